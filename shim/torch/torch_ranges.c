/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's own ranges: record_function, and PyTorch's uses of it (Optimizer.step, zero_grad,
 * ProfilerStep). One callback for the whole process, for user ranges only, added by the framework's
 * own function when the session starts. Application threads.
 */
#include "torch.h"

#include "../../format/record.h"
#include "../base/elfsym.h"
#include "../recording/ranges.h"
#include "result.h"

#include <string.h>

#define ADD_CALLBACK "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE"
#define RANGE_NAME   "_ZNK2at14RecordFunction4nameEv"
#define OPEN_MOST    1024u /* ranges that are open at a time; more are not recorded */
#define SCOPES	     10u
#define USER_SCOPE   7u

/* at::ObserverContext, a class with nothing but a virtual destructor: passed from start to end. */
struct context {
	void (*const *functions)(struct context *);
	uint32_t number; /* 0 = free */
	uint32_t name;
};

/* at::RecordFunctionCallback, the same in every release of torch_versions.def; passed by value. */
struct callback {
	const void *start; /* (range) -> std::unique_ptr of a context */
	void (*end)(const void *range, struct context *context);
	double probability;
	bool scopes[SCOPES];
	bool inputs, outputs, ids;
};

static struct context contexts[OPEN_MOST];
static const char *(*range_name)(const void *range);

static void keep_context(struct context *c)
{
	(void)c;
}

static void give_back(struct context *c)
{
	__atomic_store_n(&c->number, 0, __ATOMIC_RELEASE);
}

/* The destructor without and with freeing the memory. */
static void (*const destructors[])(struct context *) = { keep_context, give_back };

static struct context *take(void)
{
	uint32_t number = range_number(), none;

	for (uint32_t i = 0; i < OPEN_MOST; i++) {
		struct context *c = &contexts[(number + i) % OPEN_MOST];

		none = 0;
		if (__atomic_compare_exchange_n(&c->number, &none, number, false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED)) {
			c->functions = destructors;
			return c;
		}
	}
	return NULL;
}

static void record(enum gmt_kind kind, const struct context *c)
{
	range_record(kind, GMT_RANGE_FRAMEWORK, c->number, c->name);
}

static __attribute__((used)) struct context **begin(struct context **result, const void *range)
{
	const char *name = gmt_recording() ? range_name(range) : NULL;
	struct context *c = name ? take() : NULL;

	*result = c;
	if (c) {
		c->name = gmt_string(name, strlen(name));
		record(GMT_RANGE_BEGIN, c);
	}
	return result;
}
RESULT_FUNCTION(gmt_range_begin, begin);

static void end(const void *range, struct context *c)
{
	(void)range;
	if (c && gmt_recording())
		record(GMT_RANGE_END, c);
}

static void record_state(const char *state)
{
	gmt_meta("torch.ranges", state, strlen(state));
}

void torch_ranges_start(void)
{
	static bool added;
	struct callback c = { .start = (const void *)gmt_range_begin,
			      .end = end,
			      .probability = 1.0 };
	uint64_t (*add)(struct callback) = (uint64_t(*)(struct callback))elfsym_find(ADD_CALLBACK);

	range_name = (const char *(*)(const void *))elfsym_find(RANGE_NAME);
	if (!add || !range_name) {
		record_state("off: this torch does not export at::addGlobalCallback");
		return;
	}
	c.scopes[USER_SCOPE] = true;
	if (!__atomic_exchange_n(&added, true, __ATOMIC_RELAXED))
		add(c);
	record_state("on");
}
