/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace has the requested size of a block. The block is larger: the size is rounded up, and a
 * remainder too small to be split off stays with it. PyTorch's allocator decides that by the free
 * bytes behind the address. They are known here, so its rule gives the size that its counters have.
 */
#include "../base/arithmetic.h"
#include "import_parts.h"

#define UNIT	  512u
#define SMALL	  (1u << 20) /* blocks up to this size are in small segments and finely split */
#define NPU_MORE  32u	     /* bytes that torch_npu's allocator adds before it rounds up */
#define VOTES	  4
#define LOG_SMALL 20

/* "roundup_power2_divisions" has one number for each power of two of MiB. */
void import_sizes_settings(struct import *im, const struct pickle_value *settings)
{
	const struct pickle_value *rows = pickle_get(&im->p, settings, "roundup_power2_divisions");
	char key[8] = "";

	im->max_split = pickle_number(&im->p, settings, "max_split_size");
	if (!im->max_split)
		im->max_split = UINT64_MAX;
	for (unsigned i = 0; i < 16; i++) {
		unsigned n = 1u << i, len = 0;

		for (unsigned d = 10000; d; d /= 10)
			if (n >= d)
				key[len++] = (char)('0' + n / d % 10);
		key[len] = 0;
		im->round_divisions[i] = pickle_number(&im->p, rows, key);
	}
}

static uint64_t up(uint64_t n)
{
	return n < UNIT ? UNIT : (n + UNIT - 1) / UNIT * UNIT;
}

/* If a request leaves less than 32 bytes of its last unit, torch_npu's block is one unit larger. */
void import_sizes_look(struct import *im, uint64_t asked, uint64_t size)
{
	if (!asked || up(asked) == up(asked + NPU_MORE))
		return;
	im->npu_votes += size == up(asked + NPU_MORE);
	im->cuda_votes += size == up(asked);
}

bool import_sizes_npu(const struct import *im)
{
	return im->npu_votes >= VOTES && im->npu_votes > 20 * im->cuda_votes;
}

static uint64_t rounded(const struct import *im, uint64_t asked)
{
	unsigned log = arithmetic_log2(asked), row = log > LOG_SMALL ? log - LOG_SMALL : 0;
	uint64_t divisions = im->round_divisions[row < 16 ? row : 15], part;

	if (import_sizes_npu(im))
		return up(asked + NPU_MORE);
	if (asked < UNIT)
		return UNIT;
	if (divisions <= 1 || asked <= UNIT * divisions || !(asked & (asked - 1)))
		return (asked + UNIT - 1) / UNIT * UNIT;
	part = (UINT64_C(1) << log) >> arithmetic_log2(divisions);
	return part ? (asked + part - 1) & ~(part - 1) : asked;
}

uint64_t import_block_size(const struct import *im, const struct import_device *d, uint64_t addr,
			   uint64_t asked)
{
	const struct block *segment = tree_enclosing(&d->segments, addr);
	const struct block *next = tree_from(&d->blocks, addr + 1);
	uint64_t size = rounded(im, asked), room, left;
	bool fine = size <= SMALL || (segment && segment->mark);

	if (!segment || size < asked)
		return size < asked ? asked : size;
	room = segment->addr + segment->size - addr;
	if (next && next->addr - addr < room)
		room = next->addr - addr;
	if (room <= size)
		return room > asked || !asked ? room : size;
	left = room - size;
	return fine				      ? (left < UNIT ? room : size)
	       : left > SMALL && size < im->max_split ? size
						      : room;
}
