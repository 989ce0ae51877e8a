/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL: device memory of a communicator, an approximation of what has been reported for NVLink
 * machines (figures of NCCL's public issue tracker): a receive buffer of 10 MiB (three protocols)
 * and a send area of 2 MiB for each channel and connection, taken when a ring or a pair is first
 * used, and a few megabytes at once. Peers on other nodes share two pools, to send and to receive,
 * each of 16 pieces of 128 KiB for each channel (NCCL's source, src/transport/net.cc): 128 MiB with
 * the 32 channels of NVLink machines. NCCL_MAX_NCHANNELS, NCCL_BUFFSIZE and NCCL_P2P_NET_CHUNKSIZE
 * act as they do on the real one. A communicator of one rank
 * needs none of that. What it takes at least and at most is counted too: two channels, and the 2
 * GiB for each communicator that people have seen. Any thread.
 */
#include <stdlib.h>
#include "../core/usage.h"
#include "lib_nccl.h"

#define RING_CHANNELS_NVLINK 24
#define RING_CHANNELS_PCIE   4
#define PAIR_CHANNELS_NVLINK 32
#define PAIR_CHANNELS_PCIE   2
#define SIMPLE_BYTES	     (4 * MIB)
#define OTHER_PROTOCOLS	     (6 * MIB)
#define SEND_BYTES	     (2 * MIB)
#define SHARED_PIECES	     16
#define PIECE_BYTES	     (128 * 1024)
#define MOST_CHANNELS	     64
#define LEAST_CHANNELS	     2
#define MOST_BYTES	     (2048 * MIB) /* most bytes of a communicator */

static long environment(const char *name, long otherwise)
{
	const char *text = getenv(name);
	long value = text ? atol(text) : 0;

	return value > 0 ? value : otherwise;
}

/* Data centre cards have NVLink, the others do not. */
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

/* Totals of all communicators in this process. */
static uint64_t taken, least, most;

static void report_usage(int64_t more, int64_t more_least, int64_t more_most)
{
	uint64_t t = __atomic_add_fetch(&taken, more, __ATOMIC_RELAXED);
	uint64_t l = __atomic_add_fetch(&least, more_least, __ATOMIC_RELAXED);
	uint64_t m = __atomic_add_fetch(&most, more_most, __ATOMIC_RELAXED);

	usage_nccl(t, l < t ? l : t, m > t ? m : t);
}

int nccl_take(struct nccl_comm *c, size_t bytes)
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
	report_usage((int64_t)bytes, 0, 0);
	return NCCL_OK;
}

static int connect_channels(struct nccl_comm *c, long n)
{
	size_t receive = OTHER_PROTOCOLS + environment("NCCL_BUFFSIZE", SIMPLE_BYTES);
	size_t at_least = (n < LEAST_CHANNELS ? n : LEAST_CHANNELS) * (receive + SEND_BYTES);
	int result = NCCL_OK;

	c->least += at_least;
	report_usage(0, (int64_t)at_least, 0);
	while (!result && n-- > 0) {
		result = nccl_take(c, receive);
		if (!result)
			result = nccl_take(c, SEND_BYTES);
	}
	return result;
}

int nccl_connect_ring(struct nccl_comm *c)
{
	int result = NCCL_OK;

	if (c->ranks < 2)
		return NCCL_OK;
	pthread_mutex_lock(&c->lock);
	if (!c->ring) {
		c->most += MOST_BYTES;
		report_usage(0, 0, MOST_BYTES);
	}
	if (!c->ring)
		result = connect_channels(c, channels(RING_CHANNELS_NVLINK, RING_CHANNELS_PCIE));
	c->ring = !result;
	pthread_mutex_unlock(&c->lock);
	return result;
}

/* Ranks are numbered node by node. */
static bool is_elsewhere(const struct nccl_comm *c, int peer)
{
	int node = device_physical_count();

	return c->ranks > node && peer / node != c->rank / node;
}

/* The number of channels is an estimate between one and NCCL's maximum. */
static int connect_other_nodes(struct nccl_comm *c)
{
	long n = channels(PAIR_CHANNELS_NVLINK, PAIR_CHANNELS_PCIE);
	size_t each = SHARED_PIECES * environment("NCCL_P2P_NET_CHUNKSIZE", PIECE_BYTES);
	int result;

	if (c->other_nodes)
		return NCCL_OK;
	result = nccl_take(c, n * each);
	if (!result)
		result = nccl_take(c, n * each);
	if (result)
		return result;
	c->least += 2 * each;
	c->most += MOST_CHANNELS * 2 * each;
	report_usage(0, (int64_t)(2 * each), (int64_t)(MOST_CHANNELS * 2 * each));
	c->other_nodes = true;
	return NCCL_OK;
}

int nccl_connect_peer(struct nccl_comm *c, int peer)
{
	int result = NCCL_OK;

	if (peer < 0 || peer >= c->ranks)
		return NCCL_INVALID;
	if (peer == c->rank || peer >= NCCL_MAX_PEERS)
		return NCCL_OK;
	pthread_mutex_lock(&c->lock);
	if (is_elsewhere(c, peer))
		result = connect_other_nodes(c);
	else if (!c->peers[peer])
		result = connect_channels(c, channels(PAIR_CHANNELS_NVLINK, PAIR_CHANNELS_PCIE));
	c->peers[peer] = !result;
	pthread_mutex_unlock(&c->lock);
	return result;
}

void nccl_give_back(struct nccl_comm *c)
{
	report_usage(-(int64_t)c->bytes, -(int64_t)c->least, -(int64_t)c->most);
	c->least = c->most = 0;
	c->other_nodes = false;
	while (c->buffers) {
		struct nccl_buffer *b = c->buffers;

		c->buffers = b->next;
		lib_unmap(b->ptr, b->bytes);
		free(b);
	}
	c->bytes = 0;
}
