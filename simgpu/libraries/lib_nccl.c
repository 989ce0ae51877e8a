/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL: communicators. The ranks of one meet when it is made, as on a card, and find each other by
 * the id they share. A rank that cannot meet the others runs alone and assumes that they send what
 * it sends. That happens if there are more ranks than the node has devices, and with
 * SIMGPU_RANKS=alone. Any thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib_nccl.h"

struct nccl_comm *nccl_check(const void *handle)
{
	return sim_handle_check((void *)handle, NCCL_COMM);
}

/* ---- one communicator ---- */

/* Once a process has seen that not all ranks are here, none of its communicators waits. */
static bool by_itself(int ranks)
{
	static bool always;
	const char *asked = getenv("SIMGPU_RANKS"), *world = getenv("WORLD_SIZE");
	int devices = device_physical_count();

	if (ranks > devices || (world && atoi(world) > devices))
		__atomic_store_n(&always, true, __ATOMIC_RELAXED);
	return __atomic_load_n(&always, __ATOMIC_RELAXED) || (asked && !strcmp(asked, "alone"));
}

/* Sequence number of a communicator among those of that many ranks. The order is the same in all
 * ranks of a program. */
static uint64_t how_many_before(int ranks)
{
	static uint64_t made[NCCL_MAX_PEERS];

	return __atomic_fetch_add(&made[ranks % NCCL_MAX_PEERS], 1, __ATOMIC_RELAXED);
}

static void close_comm(struct nccl_comm *c)
{
	if (c->node) {
		nccl_end_exchanges(c);
		nccl_node_leave(c->node);
	}
	nccl_give_back(c);
	pthread_mutex_destroy(&c->lock);
	sim_handle_free(c);
}

/* Joins without waiting for the other ranks. */
static int open_comm(struct nccl_comm **out, int ranks, int rank, int device,
		     const struct nccl_id *id)
{
	struct nccl_comm *c;
	int result;

	if (!out || ranks < 1 || rank < 0 || rank >= ranks)
		return NCCL_INVALID;
	c = sim_handle(NCCL_COMM, sizeof(*c));
	if (!c)
		return NCCL_SYSTEM_ERROR;
	c->ranks = ranks;
	c->rank = rank;
	c->device = device;
	c->nth = how_many_before(ranks);
	pthread_mutex_init(&c->lock, NULL);
	result = nccl_open_memory(c);
	if (!result && ranks > 1 && id && nccl_id_is_here(id) && !by_itself(ranks))
		result = nccl_node_join(&c->node, id, ranks, rank, device_physical(device));
	else if (id)
		nccl_id_drop(id);
	if (result) {
		close_comm(c);
		return result;
	}
	*out = c;
	return NCCL_OK;
}

/* ---- meeting the other ranks: now, or at the end of a group ---- */

struct meeting {
	struct nccl_later later; /* first */
	struct nccl_comm *comm;
	void **out;
};

static int meet(struct nccl_later *later)
{
	struct meeting *m = (struct meeting *)later;
	struct nccl_comm *c = m->comm;
	int result = c->node ? nccl_node_meet(c->node, nccl_last_error, sizeof(nccl_last_error))
			     : NCCL_OK;

	if (result) {
		close_comm(c);
		*m->out = NULL;
	}
	free(m);
	return result;
}

static int open_and_meet(void **out, int ranks, int rank, int device, const struct nccl_id *id)
{
	struct meeting *m = out ? calloc(1, sizeof(*m)) : NULL;
	int result;

	if (!m)
		return out ? NCCL_SYSTEM_ERROR : NCCL_INVALID;
	result = open_comm(&m->comm, ranks, rank, device, id);
	if (result) {
		free(m);
		return result;
	}
	*out = m->comm;
	m->out = out;
	m->later.finish = meet;
	return nccl_later(&m->later);
}

API_CALL(int, ncclCommInitRank, open_and_meet(comm, ranks, rank, sim_device(), &id), void **comm,
	 int ranks, struct nccl_id id, int rank)
API_CALL(int, ncclCommInitRankConfig, open_and_meet(comm, ranks, rank, sim_device(), &id),
	 void **comm, int ranks, struct nccl_id id, int rank, UNUSED void *config)

API(int, ncclCommInitRankScalable, void **comm, int ranks, int rank, int ids, struct nccl_id *id,
    void *config)
{
	(void)config;
	if (ids < 1 || !id)
		return NCCL_INVALID;
	return open_and_meet(comm, ranks, rank, sim_device(), id);
}

API(int, ncclCommInitAll, void **comms, int n, const int *devices)
{
	int before = sim_device(), result;
	struct nccl_id id;

	if (!comms || n < 1 || n > sim_device_count())
		return NCCL_INVALID;
	result = nccl_id_make(&id);
	for (int i = 0; !result && i < n; i++) {
		sim_set_device(devices ? devices[i] : i);
		result = open_comm((struct nccl_comm **)&comms[i], n, i, sim_device(), &id);
	}
	sim_set_device(before);
	nccl_id_drop(&id);
	return result;
}

/* ---- communicators made from another one ---- */

/* Message from each rank of the parent to the others, on its host lane. */
struct talk {
	int32_t colour, key, rank, has_id;
	struct nccl_id id;
};

struct making {
	struct nccl_later later; /* first */
	struct nccl_comm *parent;
	struct talk mine, all[NCCL_HERE];
	uint64_t number;
	uint32_t from; /* ranks (bits) that send one */
	int ranks, rank;
	void **out;
	int (*choose)(struct making *m, struct nccl_id *id); /* sets ranks, rank and the id */
};

static int hear(struct making *m)
{
	struct nccl_node *n = m->parent->node;

	for (int r = 0; r < m->parent->ranks; r++) {
		struct nccl_message *got = NULL;

		if (!(m->from & 1u << r))
			continue;
		for (;;) {
			uint32_t bell = nccl_node_bell(n);
			bool gone = nccl_node_gone(n, 1u << r) >= 0;

			got = nccl_node_look(n, r, NCCL_LANE_HOST, m->number);
			if (got)
				break;
			if (gone)
				return NCCL_REMOTE_ERROR;
			nccl_node_sleep(n, bell);
		}
		if (!nccl_node_read(n, got, 0, &m->all[r], sizeof(m->all[r])))
			return NCCL_SYSTEM_ERROR;
		nccl_node_take(n, got);
	}
	return NCCL_OK;
}

static int finish_making(struct nccl_later *later)
{
	struct making *m = (struct making *)later;
	int result = hear(m), device = m->parent->device;
	struct nccl_comm *c = NULL;
	struct nccl_id id = { 0 };

	if (!result)
		result = m->choose(m, &id);
	if (!result && m->ranks)
		result = open_comm(&c, m->ranks, m->rank, device, &id);
	if (c && c->node)
		result = nccl_node_meet(c->node, nccl_last_error, sizeof(nccl_last_error));
	if (m->mine.has_id && memcmp(id.random, m->mine.id.random, sizeof(id.random)) != 0)
		nccl_id_drop(&m->mine.id);
	if (c && result)
		close_comm(c);
	else if (c)
		*m->out = c;
	free(m);
	return result;
}

static int make(const struct making *what)
{
	struct making *m = malloc(sizeof(*m));
	struct nccl_comm *c = what->parent;

	if (!m)
		return NCCL_SYSTEM_ERROR;
	*m = *what;
	m->later.finish = finish_making;
	m->number = __atomic_fetch_add(&c->hosts, 1, __ATOMIC_RELAXED);
	nccl_node_send(c->node, NCCL_LANE_HOST, m->number,
		       (struct nccl_message){ .kind = NCCL_TALK, .readers = m->from }, NULL, 0,
		       &m->mine, sizeof(m->mine));
	return nccl_later(&m->later);
}

/* Collects the ranks of this rank's colour, ordered by key. The first of them supplies the id. */
static int choose_colour(struct making *m, struct nccl_id *id)
{
	const struct talk *mine = &m->mine, *first = mine;

	if (mine->colour < 0)
		return NCCL_OK;
	for (const struct talk *t = m->all; t < m->all + m->parent->ranks; t++) {
		if (t->colour != mine->colour)
			continue;
		m->ranks++;
		if (t->key < mine->key || (t->key == mine->key && t->rank < mine->rank))
			m->rank++;
		if (t->key < first->key || (t->key == first->key && t->rank < first->rank))
			first = t;
	}
	*id = first->id;
	return NCCL_OK;
}

/* A split of a communicator whose other ranks do not run: their colours are unknown, so the size of
 * this part comes from the last rank's split, if that rank runs. */
static int split_alone(struct nccl_comm *c, int colour, int key, void **out)
{
	int ranks = nccl_split_ranks(c, colour, key), result;

	if (colour < 0)
		return NCCL_OK;
	if (!ranks && nccl_world_is_open()) {
		snprintf(nccl_last_error, sizeof(nccl_last_error),
			 "how many ranks this part has is not known: the last rank does not run");
		return NCCL_INVALID_USAGE;
	}
	result = open_and_meet(out, ranks ? ranks : c->ranks,
			       key >= 0 && key < c->ranks ? key : c->rank, c->device, NULL);
	if (!result)
		((struct nccl_comm *)*out)->unsure = !ranks && c->ranks > 1;
	return result;
}

API(int, ncclCommSplit, void *comm, int colour, int key, void **out, void *config)
{
	struct nccl_comm *c = nccl_check(comm);
	struct making m = { .parent = c, .out = out, .choose = choose_colour };

	(void)config;
	if (!c || !out)
		return NCCL_INVALID;
	*out = NULL;
	if (!c->node)
		return split_alone(c, colour, key, out);
	m.mine = (struct talk){ .colour = colour, .key = key, .rank = c->rank };
	m.from = (1u << c->ranks) - 1;
	if (colour >= 0 && nccl_id_make(&m.mine.id))
		return NCCL_SYSTEM_ERROR;
	m.mine.has_id = colour >= 0;
	return make(&m);
}

static int choose_first(struct making *m, struct nccl_id *id)
{
	for (int r = 0; r < m->parent->ranks; r++)
		if (m->from & 1u << r && m->all[r].has_id) {
			*id = m->all[r].id;
			return NCCL_OK;
		}
	return NCCL_INVALID;
}

API(int, ncclCommShrink, void *comm, int *without, int n, void **out, void *config, int flags)
{
	struct nccl_comm *c = nccl_check(comm);
	struct making m = { .parent = c, .out = out, .choose = choose_first };

	(void)config, (void)flags;
	if (!c || !out || n < 0 || n >= c->ranks || (n && !without))
		return NCCL_INVALID;
	*out = NULL;
	m.ranks = c->ranks - n;
	m.rank = c->rank;
	m.from = (1u << c->ranks) - 1;
	for (int i = 0; i < n; i++) {
		m.rank -= without[i] < c->rank;
		m.from &= ~(1u << without[i] % 32);
	}
	if (!c->node)
		return open_and_meet(out, m.ranks, m.rank, c->device, NULL);
	m.mine.has_id = !m.rank;
	if (!m.rank && nccl_id_make(&m.mine.id))
		return NCCL_SYSTEM_ERROR;
	return make(&m);
}

/* Existing ranks receive the id from the one that supplies it; new ranks pass it as an argument. */
API(int, ncclCommGrow, void *comm, int ranks, const struct nccl_id *id, int rank, void **out,
    void *config)
{
	struct nccl_comm *c = nccl_check(comm);
	struct making m = { .parent = c, .out = out, .choose = choose_first, .ranks = ranks };

	(void)config;
	if (!c || !c->node)
		return open_and_meet(out, ranks, c ? c->rank : rank, sim_device(), id);
	if (!out)
		return NCCL_INVALID;
	*out = NULL;
	m.rank = c->rank;
	m.from = (1u << c->ranks) - 1;
	if (id)
		m.mine = (struct talk){ .has_id = 1, .id = *id };
	return make(&m);
}

/* ---- the end of communicators ---- */

static int end_comm(void *handle)
{
	struct nccl_comm *c = nccl_check(handle);

	if (!c)
		return handle ? NCCL_INVALID : NCCL_OK;
	close_comm(c);
	return NCCL_OK;
}

API_CALL(int, ncclCommDestroy, end_comm(comm), void *comm)
API_CALL(int, ncclCommAbort, end_comm(comm), void *comm)

API(int, ncclCommSuspend, void *comm, int flags)
{
	struct nccl_comm *c = nccl_check(comm);

	if (!c)
		return NCCL_INVALID;
	if (flags & 1) {
		pthread_mutex_lock(&c->lock);
		nccl_give_back(c);
		c->ring = false;
		memset(c->peers, 0, sizeof(c->peers));
		pthread_mutex_unlock(&c->lock);
	}
	return NCCL_OK;
}

/* ---- queries ---- */

static int async_error(struct nccl_comm *c)
{
	pending_poll();
	return __atomic_load_n(&c->error, __ATOMIC_ACQUIRE);
}

#define QUESTION(name, answer)                          \
	API(int, name, const void *comm, int *out)      \
	{                                               \
		struct nccl_comm *c = nccl_check(comm); \
                                                        \
		if (!c || !out)                         \
			return NCCL_INVALID;            \
		*out = answer;                          \
		return NCCL_OK;                         \
	}

QUESTION(ncclCommCount, c->ranks)
QUESTION(ncclCommUserRank, c->rank)
QUESTION(ncclCommCuDevice, c->device)
QUESTION(ncclCommGetAsyncError, async_error(c))

/* Which of ncclCommMemStat_t: 0 can be suspended, 1 is suspended, 2 cannot be, 3 all. */
API(int, ncclCommMemStats, void *comm, int which, uint64_t *out)
{
	struct nccl_comm *c = nccl_check(comm);

	if (!c || !out)
		return NCCL_INVALID;
	*out = which == 0 || which == 3 ? c->bytes : 0;
	return NCCL_OK;
}

API(int, ncclGetVersion, int *out)
{
	if (!out)
		return NCCL_INVALID;
	*out = lib_version("nccl", 0) * 10000 + lib_version("nccl", 1) * 100 +
	       lib_version("nccl", 2);
	return NCCL_OK;
}

API_CALL(int, ncclGetUniqueId, id ? nccl_id_make(id) : NCCL_INVALID, struct nccl_id *id)
API_CALL(int, ncclCommGetUniqueId, nccl_check(comm) ? ncclGetUniqueId(id) : NCCL_INVALID,
	 void *comm, struct nccl_id *id)

API(const char *, ncclGetErrorString, int result)
{
	static const char *const texts[] = {
		"no error",
		"unhandled cuda error",
		"unhandled system error",
		"internal error",
		"invalid argument",
		"invalid usage",
		"remote process exited or there was a network error",
		"in progress",
		"timeout",
	};

	if (result < 0 || result >= (int)(sizeof(texts) / sizeof(texts[0])))
		return "unknown result code";
	return texts[result];
}

API(const char *, ncclGetLastError, const void *comm)
{
	(void)comm; /* as in the real library, the last error of all */
	return nccl_last_error;
}
