/* SPDX-License-Identifier: Apache-2.0
 *
 * Small reductions: sums, means, largest and smallest, any and all, of whole tensors and along
 * dimensions. Any thread.
 */
#include "core.h"
#include "kernels.h"
#include "numbers.h"

#define RESULTS	 256
#define ELEMENTS 1024
#define WORDS	 160 /* of ReduceOp are looked at */
#define INTS	 24  /* where its configuration must begin */
#define CONFIG	 16  /* ints of it */

struct reduction {
	const struct kernel *k;
	void *const *at; /* source, result */
	const uint32_t *steps_in, *steps_out;
	int inputs, outputs; /* elements of each result, results */
};

/* ---- PyTorch's ReduceOp ---- */

/* Where the structure holds the source's address. Behind it stand the result's, two that are nearly
 * always empty (a second result, a buffer), two that only a large reduction has (a buffer, its
 * semaphores) and a first index of 0. Parts of the structure are not initialised and may hold other
 * addresses. */
static void *const *addresses_in(void *const *words)
{
	for (int i = 0; i < WORDS; i++) {
		void *const *w = words + i;
		bool large = sim_is_device_ptr(w[4]) && sim_is_device_ptr(w[5]);

		if (sim_is_device_ptr(w[0]) && sim_is_device_ptr(w[1]) && !w[2] && !w[3] &&
		    (large || (!w[4] && !w[5])) && !w[6])
			return w;
	}
	return NULL;
}

/* Its configuration is a row of ints: an element's size, inputs, outputs, eight steps and factors,
 * then a block's width, height and threads. Two OffsetCalculators follow, of a result's inputs and
 * of the results, then the addresses: as they must fit, it is told from what happens to stand
 * before it. */
static bool read_config(struct reduction *r, const int *ints)
{
	for (int i = 0; i < INTS; i++) {
		const int *c = ints + i;
		uintptr_t end;

		if (c[0] != number_size(r->k->in) || c[1] <= 0 || c[2] <= 0 || c[11] <= 0 ||
		    c[12] <= 0 || c[13] != c[11] * c[12] || c[13] > 1024)
			continue;
		r->inputs = c[1];
		r->outputs = c[2];
		r->steps_in = (const uint32_t *)c + CONFIG;
		r->steps_out = r->steps_in + steps_words(1);
		end = (uintptr_t)(r->steps_out + steps_words(2));
		r->at = (void *const *)((end + 7) & ~(uintptr_t)7);
		if (steps_elements(r->steps_in) == (uint64_t)c[1] &&
		    steps_elements(r->steps_out) == (uint64_t)c[2] && sim_is_device_ptr(r->at[0]) &&
		    sim_is_device_ptr(r->at[1]) && !r->at[2])
			return true;
	}
	return false;
}

/* ---- what it does ---- */

/* A guess raises no alarm: whether all are true, or any, is decided by what is known, so checks of
 * what kernels would have computed pass (is all of it finite, is each probability positive?). */
static long double next(enum kernel_what what, bool first, long double total, long double x,
			bool known)
{
	switch (what) {
	case WHAT_SUM:
	case WHAT_MEAN:
		return first ? x : total + x;
	case WHAT_ANY:
		return (!first && total) || (x && known);
	case WHAT_ALL:
		return (first || total) && (x || !known);
	case WHAT_MAXIMUM:
		return first || x > total ? x : total;
	default:
		return first || x < total ? x : total;
	}
}

static void do_result(const struct reduction *r, uint32_t o)
{
	const struct kernel *k = r->k;
	size_t from = steps_offset(r->steps_out, 2, 1, o);
	char *to = (char *)r->at[1] + steps_offset(r->steps_out, 2, 0, o);
	bool all_known = true, known;
	long double total = 0;
	char value[16];

	for (int i = 0; i < r->inputs; i++) {
		known = contents_look(value, r->at[0], from + steps_offset(r->steps_in, 1, 0, i),
				      number_size(k->in));
		total = next(k->what, !i, total, number_load(k->in, value), known);
		all_known = all_known && known;
	}
	if (k->what == WHAT_MEAN)
		total /= r->inputs;
	number_store(k->out, value, number_cast(k->out, total));
	contents_write(to, value, number_size(k->out), all_known);
}

void reduce_launch(const struct kernel *k, void *structure)
{
	struct reduction r = { .k = k };
	void *const *at;
	char value[16];

	if (k->what == WHAT_UNKNOWN || !read_config(&r, structure)) {
		at = addresses_in(structure);
		if (at)
			sim_forget(at[1]);
		return;
	}
	if (r.outputs <= RESULTS && (int64_t)r.inputs * r.outputs <= ELEMENTS) {
		for (int o = 0; o < r.outputs; o++)
			do_result(&r, o);
		return;
	}
	sim_forget(r.at[1]);
	number_store(k->out, value, 1);
	if (k->what == WHAT_ALL && r.outputs == 1)
		contents_write(r.at[1], value, number_size(k->out), false);
}
