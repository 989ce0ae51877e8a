/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL: the number of ranks in a part of a communicator whose other ranks do not run. NCCL collects
 * a colour from each rank and counts them, but here only this rank's colour is known. There are two
 * ways to find the number. If a program makes one group after the other, PyTorch's colour is
 * Python's hash of the tuple of the group's ranks. A group of evenly spaced ranks, like those along
 * a dimension of a mesh, is then found by trying. If all parts are made at once they have one size,
 * and the last rank of all is the last of its part. Its place in the part gives the number,
 * provided that it is among the running ranks. Any thread.
 */
#include <stdint.h>
#include "lib_nccl.h"

#define MOST 65536 /* ranks */

/* Python's hash of a tuple of small whole numbers (xxHash, rounds of 64 bits). */
#define PRIME_1 11400714785074694791ull
#define PRIME_2 14029467366897019727ull
#define PRIME_5 2870177450012600261ull

static uint64_t hash_number(uint64_t hash, uint64_t number)
{
	hash += number * PRIME_2;
	hash = hash << 31 | hash >> 33;
	return hash * PRIME_1;
}

static int colour_of(uint64_t hash, uint64_t length)
{
	int64_t h;

	hash += length ^ (PRIME_5 ^ 3527539u);
	h = hash == UINT64_MAX ? 1546275796 : (int64_t)hash;
	return (int)((h < 0 ? -(uint64_t)h : (uint64_t)h) % 2147483648u);
}

static int by_colour(int of, int rank, int colour, int key)
{
	if (of > MOST || key < 0 || key > rank || colour < 0)
		return 0;
	for (int step = 1; step < of && rank - (int64_t)key * step >= 0; step++) {
		uint64_t hash = PRIME_5;
		int length = 0;

		for (int r = rank - key * step; r < of; r += step) {
			hash = hash_number(hash, (uint64_t)r);
			if (++length > key && colour_of(hash, (uint64_t)length) == colour)
				return length;
		}
	}
	return 0;
}

int nccl_split_ranks(struct nccl_comm *c, int colour, int key)
{
	struct nccl_topic topic = nccl_topic_split(c);
	int last[2] = { colour, key }, ranks = by_colour(c->ranks, c->rank, colour, key);

	if (c->rank == c->ranks - 1)
		nccl_world_tell(topic, last, sizeof(last));
	if (ranks || colour < 0)
		return ranks;
	if (c->rank < c->ranks - 1 && !nccl_world_hear(topic, last, sizeof(last)))
		return 0;
	return nccl_world_is_open() && last[0] >= 0 && c->ranks % (last[1] + 1) == 0 ? last[1] + 1
										     : 0;
}
