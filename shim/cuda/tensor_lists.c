/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First the layouts of ATen/native/cuda/MultiTensorApply.cuh, unchanged since PyTorch 1.13 but for
 * the types of their numbers: lists of addresses, a number of elements for each tensor, additions
 * of the kind of kernel, then the tensor and the chunk of each block of threads. Then the layout of
 * Shape.cu (cat): addresses, three numbers of 4 or 8 bytes and a flag for each tensor. Pure.
 */
#include "tensor_lists.h"

#include <string.h>

#define BLOCKS	   320u
#define DEPTH_MOST 5u

static const uint16_t plain_most[DEPTH_MOST] = { 110, 64, 48, 36, 30 };
static const uint16_t scalar_most[DEPTH_MOST] = { 96, 64, 48, 36, 30 };

static const struct kind {
	const char *name; /* the mangled name up to the number of lists */
	const uint16_t *most;
	uint16_t more;	/* bytes for each tensor after its number of elements */
	uint16_t steps; /* 1: a list of steps follows, as long as one with scalars */
	uint16_t start; /* bytes after the chunks */
} kinds[] = {
	{ "18TensorListMetadataILi", plain_most, 0, 0, 4 },
	{ "32FusedOptimizerTensorListMetadataILi", plain_most, 0, 1, 4 },
	{ "28TensorListScalarListMetadataIfLi", scalar_most, 4, 0, 0 },
	{ "28TensorListScalarListMetadataIdLi", scalar_most, 8, 0, 0 },
};

static struct tensor_lists layout(const struct kind *k, unsigned lists, size_t size)
{
	unsigned most = k->most[lists - 1], numbers = 8 * most * (lists + 1);
	unsigned by_block = numbers + k->more * most + (k->steps ? 8u * scalar_most[lists - 1] : 0);
	unsigned end = (by_block + BLOCKS + 4 * BLOCKS + k->start + 7) & ~7u;

	if (size != end)
		return (struct tensor_lists){ 0 };
	return (struct tensor_lists){ .lists = (uint16_t)lists,
				      .most = (uint16_t)most,
				      .steps = (uint16_t)(k->steps ? numbers : 0),
				      .by_block = (uint16_t)by_block };
}

/* The layout's number of tensors is only in the mangled name; `most` is an upper bound of it. */
static struct tensor_lists cat(size_t size)
{
	enum { LEAST = 8 + 3 * 4 + 1 };

	return (struct tensor_lists){ .lists = 1,
				      .most = (uint16_t)(size / LEAST),
				      .parameter = 1 };
}

struct tensor_lists tensor_lists_of(const char *name, size_t length, const size_t sizes[2])
{
	static const char cat_name[] = "CatArrayBatchedCopy";

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		size_t n = strlen(kinds[i].name);
		const char *at = memmem(name, length, kinds[i].name, n);
		unsigned lists = at && at + n < name + length ? (unsigned)(at[n] - '0') : 0;

		if (lists >= 1 && lists <= DEPTH_MOST)
			return layout(&kinds[i], lists, sizes[0]);
	}
	if (memmem(name, length, cat_name, sizeof(cat_name) - 1) && sizes[0] == 8)
		return cat(sizes[1]);
	return (struct tensor_lists){ 0 };
}

unsigned tensor_lists_count(const struct tensor_lists *l, const char *parameter,
			    const unsigned grid[2])
{
	unsigned count = grid[1];

	if (l->by_block && (!grid[0] || grid[0] > BLOCKS))
		return l->most;
	if (l->by_block)
		count = (uint8_t)parameter[l->by_block + grid[0] - 1] + 1u;
	return count <= l->most ? count : l->most;
}
