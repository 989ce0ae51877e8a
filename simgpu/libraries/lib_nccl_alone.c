/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL: the functions of a rank that runs alone, as the only one or because the others do not run.
 * A collective treats small buffers as if every other rank had sent the same as this one, so that
 * frameworks that compare shapes and counts between ranks find them equal. Data that only another
 * rank can know (the root of a broadcast, the stage before this one) comes from the running ranks
 * of the world, if there are any. Any thread.
 */
#include <string.h>
#include "lib_nccl.h"

static void copy(void *to, const void *from, size_t bytes)
{
	if (bytes && to && from && to != from)
		sim_copy(to, from, bytes);
}

/* A sum or product over ranks that do not run: they are assumed to contribute this rank's
 * values. */
static void sum_up(const struct nccl_comm *c, const struct nccl_call *call, void *to,
		   const void *from, size_t bytes)
{
	_Alignas(16) unsigned char total[SIM_SMALL], data[SIM_SMALL];
	unsigned char states[SIM_SMALL], others[SIM_SMALL];
	bool whole = call->op == NCCL_SUM || call->op == NCCL_PROD;

	if (!whole || bytes > SIM_SMALL || c->ranks < 2 || c->unsure ||
	    contents_least((uintptr_t)from, bytes) == CONTENTS_UNKNOWN) {
		copy(to, from, bytes);
		return;
	}
	contents_read(from, total, states, bytes);
	memcpy(data, total, bytes);
	memcpy(others, states, bytes);
	for (int r = 1; r < c->ranks; r++)
		nccl_combine(total, states, data, others, call->count, call->type, call->op);
	contents_store(to, total, states, bytes);
}

static void broadcast(struct nccl_comm *c, const struct nccl_call *call, size_t bytes)
{
	struct nccl_topic topic = nccl_topic_broadcast(c, bytes);

	topic.type = call->type;
	topic.root = call->root;

	if (call->root == c->rank) {
		copy(call->to, call->from, bytes);
		nccl_group_send(c, call->from, bytes, -1);
		nccl_world_tell(topic, call->from, bytes);
		return;
	}
	copy(call->to, call->from, bytes);
	nccl_world_pass(topic);
	nccl_group_receive(c, call->to, bytes, topic);
}

int nccl_alone(enum nccl_kind kind, const struct nccl_call *call)
{
	struct nccl_comm *c = call->comm;
	size_t bytes = call->count * nccl_type_bytes(call->type);
	bool takes = call->root < 0 || call->root == c->rank;

	if (kind == NCCL_BROADCAST)
		broadcast(c, call, bytes);
	else if (kind == NCCL_GATHER && c->unsure)
		copy((char *)call->to + c->rank * bytes, call->from, bytes);
	else if (kind == NCCL_GATHER)
		for (int r = 0; r < c->ranks; r++)
			copy((char *)call->to + r * bytes, call->from, bytes);
	else if (kind == NCCL_SCATTER_REDUCED)
		sum_up(c, call, call->to, (const char *)call->from + c->rank * bytes, bytes);
	else if (takes)
		sum_up(c, call, call->to, call->from, bytes);
	return NCCL_OK;
}

int nccl_alone_send(struct nccl_comm *c, const void *from, size_t bytes, int peer)
{
	nccl_group_send(c, from, bytes, peer);
	nccl_world_tell(nccl_topic_message(c, peer, bytes, true), from, bytes);
	nccl_world_sent();
	return NCCL_OK;
}

int nccl_alone_receive(struct nccl_comm *c, void *to, size_t bytes, int peer)
{
	sim_forget(to);
	nccl_group_receive(c, to, bytes, nccl_topic_message(c, peer, bytes, false));
	return NCCL_OK;
}
