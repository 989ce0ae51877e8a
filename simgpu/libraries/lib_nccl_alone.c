/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL: the calls of a rank that runs by itself: one of one, or one whose others are elsewhere. A
 * collective does to small buffers what it would if every other rank had sent the same as this one
 * (sums are not multiplied), so that frameworks that compare shapes and counts between ranks find
 * them equal. Any thread.
 */
#include "lib_nccl.h"

static void copy(void *to, const void *from, size_t bytes)
{
	if (bytes && to && from && to != from)
		sim_copy(to, from, bytes);
}

int nccl_alone(enum nccl_kind kind, const struct nccl_call *call)
{
	struct nccl_comm *c = call->comm;
	size_t bytes = call->count * nccl_type_bytes(call->type);
	bool takes = call->root < 0 || call->root == c->rank;

	if (kind == NCCL_BROADCAST && takes)
		nccl_group_send(c, call->from, bytes);
	else if (kind == NCCL_BROADCAST)
		nccl_group_receive(c, call->to, bytes);
	if (kind == NCCL_GATHER)
		for (int r = 0; r < c->ranks; r++)
			copy((char *)call->to + r * bytes, call->from, bytes);
	else if (kind == NCCL_SCATTER_REDUCED)
		copy(call->to, (const char *)call->from + c->rank * bytes, bytes);
	else if (kind == NCCL_BROADCAST || takes)
		copy(call->to, call->from, bytes);
	return NCCL_OK;
}
