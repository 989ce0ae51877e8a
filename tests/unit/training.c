/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocations of a GPT-2-like training as a caching allocator reports them: a dozen layers,
 * saved activations freed in backward, gradients, optimizer temporaries. Addresses come from free
 * lists by size, times from a noisy clock, so that what compresses here compresses in real life
 * too.
 */
#include "recordings.h"
#include "../../format/record.h"

#define LAYERS	  12
#define PER_LAYER 14 /* saved activations */
#define PARAMS	  148
#define CLASSES	  64

struct block {
	uint64_t addr, size;
};

struct training {
	void (*event)(void *ctx, const struct gmt_event *e);
	void *ctx;
	struct chance chance;
	uint64_t seq, now, allocated, reserved, next_addr;
	uint32_t scope, name, thread;
	struct {
		uint64_t size;
		struct block free[512];
		uint32_t used;
	} classes[CLASSES];
};

static uint32_t stack_of(uint32_t site)
{
	return 300 + site * 37 % 20011;
}

static void say(struct training *t, uint16_t kind, struct block b, uint32_t site, uint64_t arg0)
{
	struct gmt_event e = {
		.seq = ++t->seq,
		.time_ns = t->now += 3000 + chance_below(&t->chance, 40000),
		.addr = kind == GMT_TAG_RELEASED ? 0 : b.addr,
		.size = kind == GMT_TAG_RELEASED ? 0 : b.size,
		.arg0 = arg0,
		.stack = kind == GMT_TAG_RELEASED ? 0 : stack_of(site),
		.thread = t->thread,
		.kind = kind,
		.device = kind == GMT_TAG_RELEASED ? -1 : 0,
	};

	if (kind == GMT_BLOCK_ALLOC || kind == GMT_BLOCK_FREE) {
		e.arg0 = t->allocated;
		e.arg1 = t->reserved;
	}
	if (kind != GMT_TAG_RELEASED) {
		e.name = t->name;
		e.scope = t->scope;
	}
	t->event(t->ctx, &e);
}

static uint32_t class_of(struct training *t, uint64_t size)
{
	uint32_t i = 0;

	while (t->classes[i].size && t->classes[i].size != size)
		i++;
	t->classes[i].size = size;
	return i;
}

static struct block take(struct training *t, uint64_t bytes, uint32_t site)
{
	uint64_t size = (bytes + 511) & ~511ULL;
	uint32_t c = class_of(t, size);
	struct block b = { t->next_addr, size };

	if (t->classes[c].used) {
		b = t->classes[c].free[--t->classes[c].used];
	} else {
		t->next_addr += size;
		t->reserved += size;
	}
	t->allocated += size;
	say(t, GMT_BLOCK_ALLOC, b, site, 0);
	return b;
}

static void give(struct training *t, struct block b, uint32_t site)
{
	uint32_t c = class_of(t, b.size);

	t->classes[c].free[t->classes[c].used++] = b;
	t->allocated -= b.size;
	say(t, GMT_BLOCK_FREE, b, site, 0);
}

static uint64_t activation(uint32_t i)
{
	static const uint64_t sizes[] = { 768, 768, 2304, 768, 6144, 768, 3072, 3072, 768, 2, 1 };

	return sizes[i % 11] * 8 * 512 * 4;
}

static uint64_t saved_variable(uint32_t i)
{
	return 0x55d0c0de0000 + i * 0x2b0 % 0x40000;
}

static void forward(struct training *t, struct block *saved)
{
	for (uint32_t i = 0; i < LAYERS * PER_LAYER; i++) {
		uint32_t site = i % PER_LAYER;
		struct block temporary = take(t, activation(i + 3), 2 * site);

		saved[i] = take(t, activation(i), 2 * site + 1);
		say(t, GMT_TAG_SAVED, saved[i], 100 + site, saved_variable(i));
		give(t, temporary, 2 * site);
	}
}

static void backward(struct training *t, struct block *saved, struct block *grads)
{
	t->thread = 2;
	for (uint32_t i = LAYERS * PER_LAYER, p = 0; i-- > 0;) {
		uint32_t site = 200 + i % PER_LAYER;
		struct block grad;

		t->scope++;
		t->name = 40 + i % PER_LAYER;
		grad = take(t, activation(i + 1), site);
		say(t, GMT_TAG_RELEASED, saved[i], 0, saved_variable(i));
		give(t, saved[i], site);
		if (p < PARAMS)
			grads[p++] = take(t, activation(i) / 16, site + 50);
		give(t, grad, site);
	}
	t->name = t->scope = 0;
	t->thread = 1;
}

static void optimize(struct training *t, struct block *grads)
{
	for (uint32_t p = 0; p < PARAMS; p++) {
		struct block a = take(t, grads[p].size, 400), b = take(t, grads[p].size, 401);

		give(t, a, 400);
		give(t, b, 401);
	}
	for (uint32_t p = 0; p < PARAMS; p++)
		give(t, grads[p], 410);
}

void train(uint32_t steps, void (*event)(void *ctx, const struct gmt_event *e), void *ctx)
{
	struct training *t = calloc(1, sizeof(*t));
	struct block saved[LAYERS * PER_LAYER], grads[PARAMS];

	assert_non_null(t);
	t->event = event;
	t->ctx = ctx;
	t->now = 86400000000000;
	t->next_addr = 0x7f3a40000000;
	t->thread = 1;
	for (uint32_t i = 0; i < steps; i++) {
		forward(t, saved);
		backward(t, saved, grads);
		optimize(t, grads);
	}
	free(t);
}
