/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workspaces that PyTorch allocates for libraries. Those of cuBLAS, one for each thread and stream,
 * stay until the end, and a setting makes them smaller. Those of cuDNN's convolutions hold copies
 * of tensors whose channels come first, which its fast kernels do not read as they are.
 */
#include "../base/arithmetic.h"
#include "advise.h"

enum { PART = 10 }; /* below 1/PART of the peak there is no finding */

/* A product of cuBLASLt makes a handle of cuBLAS as well, with its workspace. */
bool advise_is_of_cublas(struct timeline *t, uint32_t stack, uint64_t seq)
{
	struct stacks *s = &t->stacks;

	return stacks_have(s, stack, seq, "Blas") &&
	       (!stacks_have(s, stack, seq, "BlasLt") || stacks_have(s, stack, seq, "BlasHandle"));
}

const struct cublas_setting *advise_cublas_setting(uint64_t bytes)
{
	static const struct cublas_setting all[] = { { ":4096:2", 8 << 20 },
						     { ":16:8", 128 << 10 } };

	return FIRST_OF(x, all, sizeof(all) / sizeof(*all), x->left <= bytes / 2);
}

/* Samples with one dimension are left out because PyTorch makes them contiguous, and backward
 * passes because their stacks do not say what the samples are. */
static bool copies_channels(struct timeline *t, const struct advised *l)
{
	static const char *const ops[] = { "conv2d", "conv3d", "conv_transpose2d",
					   "conv_transpose3d" };

	return stacks_have(&t->stacks, l->stack, l->from, "cudnn_convolution") &&
	       ANY_OF(op, ops, 4, stacks_have(&t->stacks, l->stack, l->from, *op));
}

/* The setting limits workspaces of cuBLASLt too from PyTorch 2.11 on, not in all earlier versions.
 */
static void shrink_cublas(struct advise *a, const struct cublas_setting *setting)
{
	struct finding *f = advise_add(a, "less_workspace");
	uint64_t left = setting->left;

	ADVISE_EACH (a, CLASS_BIT(workspace), l) {
		if (l.size <= left || !stacks_have(&a->timeline->stacks, l.stack, l.from, "Blas"))
			continue;
		plan_without(&f->plan, l.life, l.from, l.until, l.size - left);
		if (advise_is_of_cublas(a->timeline, l.stack, l.from))
			plan_without(&f->cautious, l.life, l.from, l.until, l.size - left);
		else
			f->range = true;
		f->bytes += advise_counts(a, &l) ? l.size : 0;
		f->blocks += advise_counts(a, &l);
	}
	f->library = true;
	f->function = setting->conf;
	f->size = left;
}

static void order_channels(struct advise *a)
{
	struct finding *f = advise_add(a, "channels_last");

	f->range = true; /* from nothing */
	ADVISE_EACH (a, CLASS_BIT(workspace), l) {
		if (!copies_channels(a->timeline, &l))
			continue;
		advise_without(a, f, &l, l.from);
		if (advise_counts(a, &l))
			advise_name(a, f, &l);
	}
}

void advise_workspaces(struct advise *a)
{
	uint64_t cublas = 0, largest = 0, cudnn = 0;
	const struct cublas_setting *setting;

	ADVISE_EACH (a, CLASS_BIT(workspace), l) {
		if (!advise_counts(a, &l))
			continue;
		if (advise_is_of_cublas(a->timeline, l.stack, l.from)) {
			cublas += l.size;
			largest = arithmetic_most(largest, l.size);
		} else if (copies_channels(a->timeline, &l)) {
			cudnn += l.size;
		}
	}
	setting = advise_cublas_setting(largest);
	/* `oom` has a remedy of that name, which it replays. */
	if (setting && cublas >= a->peak / PART && !a->wanted_count)
		shrink_cublas(a, setting);
	if (cudnn >= a->peak / PART)
		order_channels(a);
}
