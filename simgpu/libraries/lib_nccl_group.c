/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL: groups of calls, between ncclGroupStart and ncclGroupEnd. Frameworks gather and exchange
 * data by a group of broadcasts, or of sends and receives. No call waits for other ranks within a
 * group, so that work which must wait (making a communicator) is done at its end. In a rank that
 * runs alone, a receive gets the data that this rank sends to itself in the group, else the first
 * data of the same size that it sends there, because every other rank is assumed to send the same.
 * Without any it gets the message of another running rank of the world. Each thread has its own
 * group.
 */
#include "lib_nccl.h"

#define PENDING 2048

struct transfer {
	struct nccl_comm *comm;
	char *at;
	size_t bytes;
	int peer;
	struct nccl_topic topic; /* of a receive */
};

static __thread struct {
	int depth, sends, receives;
	struct transfer sent[PENDING], received[PENDING];
	struct nccl_later *later, **last;
} group;

void nccl_group_send(struct nccl_comm *comm, const void *from, size_t bytes, int peer)
{
	if (group.depth && group.sends < PENDING)
		group.sent[group.sends++] =
			(struct transfer){ comm, (char *)from, bytes, peer, { 0 } };
}

static void fill(const struct transfer *to)
{
	const struct transfer *found = NULL;

	for (const struct transfer *s = group.sent; s < group.sent + group.sends; s++)
		if (s->comm == to->comm && s->bytes == to->bytes &&
		    (!found || (s->peer == s->comm->rank && found->peer != s->peer)))
			found = s;
	if (found)
		sim_copy(to->at, found->at, to->bytes);
	else if (!nccl_world_hear(to->topic, to->at, to->bytes) && nccl_world_is_open())
		nccl_world_assume(to->comm, to->at, to->bytes, to->topic);
}

void nccl_group_receive(struct nccl_comm *comm, void *to, size_t bytes, struct nccl_topic topic)
{
	struct transfer t = { comm, to, bytes, -1, topic };

	if (!group.depth)
		fill(&t);
	else if (group.receives < PENDING)
		group.received[group.receives++] = t;
}

static int finish_all(void)
{
	int result = NCCL_OK, one;

	for (struct nccl_later *l = group.later, *next; l; l = next) {
		next = l->next;
		one = l->finish(l);
		result = result ? result : one;
	}
	group.later = NULL;
	return result;
}

int nccl_later(struct nccl_later *later)
{
	if (!group.later)
		group.last = &group.later;
	*group.last = later;
	group.last = &later->next;
	return group.depth ? NCCL_OK : finish_all();
}

API(int, ncclGroupStart, void)
{
	group.depth++;
	return NCCL_OK;
}

API(int, ncclGroupEnd, void)
{
	if (!group.depth)
		return NCCL_INVALID;
	if (--group.depth)
		return NCCL_OK;
	for (int i = 0; i < group.receives; i++)
		fill(&group.received[i]);
	group.sends = group.receives = 0;
	return finish_all();
}
