/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL: communicators. Each process believes itself to be heard by all others; nothing is
 * exchanged, so ranks need not even meet. Any thread.
 *
 * Device memory of a communicator is an approximation of what has been reported for NVLink machines
 * (figures of NCCL's public issue tracker): a receive buffer of 10 MiB (three protocols) and a send
 * area of 2 MiB for each channel and connection, taken when a ring or a pair is first used, and a
 * few megabytes at once. NCCL_MAX_NCHANNELS and NCCL_BUFFSIZE act as they do on the real one. A
 * communicator of one rank needs none of that.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/random.h>
#include "lib_nccl.h"

#define RING_CHANNELS_NVLINK 24
#define RING_CHANNELS_PCIE   4
#define PAIR_CHANNELS_NVLINK 32
#define PAIR_CHANNELS_PCIE   2
#define BASE_BYTES	     (8 * MIB)
#define SIMPLE_BYTES	     (4 * MIB)
#define OTHER_PROTOCOLS	     (6 * MIB)
#define SEND_BYTES	     (2 * MIB)

struct id {
	char bytes[128];
};

struct nccl_comm *nccl_check(const void *handle)
{
	return sim_handle_check((void *)handle, NCCL_COMM);
}

/* ---- device memory ---- */

static long environment(const char *name, long otherwise)
{
	const char *text = getenv(name);
	long value = text ? atol(text) : 0;

	return value > 0 ? value : otherwise;
}

/* Cards of the data centre have NVLink, the others do not. */
static bool nvlink(void)
{
	int capability = lib_capability();

	return capability == 80 || capability == 90 || capability == 100;
}

static long channels(long on_nvlink, long on_pcie)
{
	long n = nvlink() ? on_nvlink : on_pcie, most = environment("NCCL_MAX_NCHANNELS", n);

	return n < most ? n : most;
}

static int take(struct nccl_comm *c, size_t bytes)
{
	struct nccl_buffer *b = calloc(1, sizeof(*b));

	if (!b)
		return NCCL_SYSTEM_ERROR;
	b->ptr = lib_map(bytes);
	if (!b->ptr) {
		free(b);
		return NCCL_CUDA_ERROR;
	}
	b->bytes = bytes;
	b->next = c->buffers;
	c->buffers = b;
	c->bytes += bytes;
	return NCCL_OK;
}

static int connect_channels(struct nccl_comm *c, long n)
{
	size_t receive = OTHER_PROTOCOLS + environment("NCCL_BUFFSIZE", SIMPLE_BYTES);
	int result = NCCL_OK;

	while (!result && n-- > 0) {
		result = take(c, receive);
		if (!result)
			result = take(c, SEND_BYTES);
	}
	return result;
}

int nccl_connect_ring(struct nccl_comm *c)
{
	int result = NCCL_OK;

	if (c->ranks < 2)
		return NCCL_OK;
	pthread_mutex_lock(&c->lock);
	if (!c->ring)
		result = connect_channels(c, channels(RING_CHANNELS_NVLINK, RING_CHANNELS_PCIE));
	c->ring = !result;
	pthread_mutex_unlock(&c->lock);
	return result;
}

int nccl_connect_peer(struct nccl_comm *c, int peer)
{
	int result = NCCL_OK;

	if (peer < 0 || peer >= c->ranks)
		return NCCL_INVALID;
	if (peer == c->rank || peer >= NCCL_MAX_PEERS)
		return NCCL_OK;
	pthread_mutex_lock(&c->lock);
	if (!c->peers[peer])
		result = connect_channels(c, channels(PAIR_CHANNELS_NVLINK, PAIR_CHANNELS_PCIE));
	c->peers[peer] = !result;
	pthread_mutex_unlock(&c->lock);
	return result;
}

/* ---- communicators ---- */

static void give_back(struct nccl_comm *c)
{
	while (c->buffers) {
		struct nccl_buffer *b = c->buffers;

		c->buffers = b->next;
		lib_unmap(b->ptr, b->bytes);
		free(b);
	}
	c->bytes = 0;
}

static int open_comm(void **out, int ranks, int rank, int device)
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
	pthread_mutex_init(&c->lock, NULL);
	result = take(c, BASE_BYTES);
	if (result) {
		sim_handle_free(c);
		return result;
	}
	*out = c;
	return NCCL_OK;
}

static int close_comm(void *handle)
{
	struct nccl_comm *c = nccl_check(handle);

	if (!c)
		return handle ? NCCL_INVALID : NCCL_OK;
	give_back(c);
	pthread_mutex_destroy(&c->lock);
	sim_handle_free(c);
	return NCCL_OK;
}

API(int, ncclCommInitRank, void **comm, int ranks, struct id id, int rank)
{
	(void)id;
	return open_comm(comm, ranks, rank, sim_device());
}

API(int, ncclCommInitRankConfig, void **comm, int ranks, struct id id, int rank, void *config)
{
	(void)id, (void)config;
	return open_comm(comm, ranks, rank, sim_device());
}

API(int, ncclCommInitRankScalable, void **comm, int ranks, int rank, int ids, struct id *id,
    void *config)
{
	(void)ids, (void)id, (void)config;
	return open_comm(comm, ranks, rank, sim_device());
}

API(int, ncclCommInitAll, void **comms, int n, const int *devices)
{
	int before = sim_device(), result = NCCL_OK;

	if (!comms || n < 1 || n > sim_device_count())
		return NCCL_INVALID;
	for (int i = 0; !result && i < n; i++) {
		sim_set_device(devices ? devices[i] : i);
		result = open_comm(&comms[i], n, i, sim_device());
	}
	sim_set_device(before);
	return result;
}

/* Who else takes the same colour cannot be known here: the group counts as large as the one it is
 * split from. */
API(int, ncclCommSplit, void *comm, int colour, int key, void **out, void *config)
{
	struct nccl_comm *c = nccl_check(comm);

	(void)config;
	if (!c || !out)
		return NCCL_INVALID;
	*out = NULL;
	if (colour < 0)
		return NCCL_OK;
	return open_comm(out, c->ranks, key >= 0 && key < c->ranks ? key : c->rank, c->device);
}

API(int, ncclCommShrink, void *comm, int *without, int n, void **out, void *config, int flags)
{
	struct nccl_comm *c = nccl_check(comm);
	int rank;

	(void)config, (void)flags;
	if (!c || !out || n < 0 || n >= c->ranks || (n && !without))
		return NCCL_INVALID;
	rank = c->rank;
	for (int i = 0; i < n; i++)
		rank -= without[i] < c->rank;
	return open_comm(out, c->ranks - n, rank, c->device);
}

API(int, ncclCommGrow, void *comm, int ranks, const struct id *id, int rank, void **out,
    void *config)
{
	struct nccl_comm *c = nccl_check(comm);

	(void)id, (void)config;
	return open_comm(out, ranks, c ? c->rank : rank, sim_device());
}

API(int, ncclCommDestroy, void *comm)
{
	return close_comm(comm);
}

API(int, ncclCommAbort, void *comm)
{
	return close_comm(comm);
}

API(int, ncclCommSuspend, void *comm, int flags)
{
	struct nccl_comm *c = nccl_check(comm);

	if (!c)
		return NCCL_INVALID;
	if (flags & 1) {
		pthread_mutex_lock(&c->lock);
		give_back(c);
		c->ring = false;
		memset(c->peers, 0, sizeof(c->peers));
		pthread_mutex_unlock(&c->lock);
	}
	return NCCL_OK;
}

/* ---- questions ---- */

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
QUESTION(ncclCommGetAsyncError, NCCL_OK)

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

API(int, ncclGetUniqueId, struct id *id)
{
	if (!id)
		return NCCL_INVALID;
	memset(id, 0, sizeof(*id));
	snprintf(id->bytes, sizeof(id->bytes), "simgpu %d ", (int)getpid());
	return getrandom(id->bytes + 64, 64, 0) == 64 ? NCCL_OK : NCCL_SYSTEM_ERROR;
}

API(int, ncclCommGetUniqueId, void *comm, struct id *id)
{
	return nccl_check(comm) ? ncclGetUniqueId(id) : NCCL_INVALID;
}

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
	(void)comm;
	return "";
}
