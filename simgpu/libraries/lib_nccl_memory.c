/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL: device memory of a communicator, by NCCL's sources (2.21 to 2.28), compared with published
 * figures of 8 H100 (simgpu/README.md). All of it is mapped in pages of 2 MiB:
 *	kernels		code and stack, once for a process and a device
 *	channels	three arrays each, one more with NVLS, and two of the communicator
 *	connections	a receive buffer of 10 MiB (three protocols) and a send area of 2 MiB for
 *			each channel: of a ring, of a tree, of a pair
 *	NVLS		1 MiB for each of its channels, rank and direction
 *	network		pools of pieces for each channel, which peers on other nodes share
 * An algorithm's connections are made when it is first used; before 2.22, or with
 * NCCL_RUNTIME_CONNECT=0, all at once. NCCL's choice of an algorithm is not modelled, except that
 * large all-reduces use NVLS. NCCL_MAX_NCHANNELS, NCCL_BUFFSIZE, NCCL_NVLS_ENABLE and
 * NCCL_P2P_NET_CHUNKSIZE act as in the real library. A minimum (half of the channels) and a maximum
 * (every algorithm) are counted too. Any thread.
 */
#include <stdlib.h>
#include "../core/usage.h"
#include "lib_nccl.h"

#define RING_CHANNELS_NVLINK 24
#define RING_CHANNELS_PCIE   4
#define PAIR_CHANNELS_NVLINK 32
#define PAIR_CHANNELS_PCIE   2
#define CHANNEL_BYTES	     (6 * MIB)
#define NVLS_CHANNEL_BYTES   (2 * MIB)
#define COMM_BYTES	     (4 * MIB)
#define SIMPLE_BYTES	     (4 * MIB)
#define OTHER_PROTOCOLS	     (6 * MIB)
#define SEND_BYTES	     (2 * MIB)
#define NVLS_CHANNELS	     16
#define NVLS_LEAST_RANKS     3 /* on a node */
#define NVLS_LEAST_BYTES     (1.0 * MIB)
#define MULTICAST_PAGE	     (512 * MIB) /* NVLS buffers were rounded up to it before 2.22 */
#define SHARED_PIECES	     16
#define PIECE_BYTES	     (128 * 1024)
#define NODE_PIECE_BYTES     (512 * 1024)
#define MOST_CHANNELS	     64
#define UNEXPLAINED_BYTES    (628 * MIB) /* seen with 2.21 on 8 H100, not in the formula */

static long environment(const char *name, long otherwise)
{
	const char *text = getenv(name);
	long value = text ? atol(text) : 0;

	return value > 0 ? value : otherwise;
}

static long channels(long on_nvlink, long on_pcie)
{
	long n = card_has_nvlink() ? on_nvlink : on_pcie,
	     most = environment("NCCL_MAX_NCHANNELS", n);

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

/* Maps memory for a communicator; the minimum and maximum for these bytes are counted too. */
static int take(struct nccl_comm *c, size_t bytes, size_t at_least, size_t at_most)
{
	struct nccl_buffer *b = bytes ? calloc(1, sizeof(*b)) : NULL;

	if (!b)
		return bytes ? NCCL_SYSTEM_ERROR : NCCL_OK;
	b->ptr = lib_map(bytes);
	if (!b->ptr) {
		free(b);
		return NCCL_CUDA_ERROR;
	}
	b->bytes = bytes;
	b->next = c->buffers;
	c->buffers = b;
	c->bytes += bytes;
	c->least += at_least;
	c->most += at_most;
	report_usage((int64_t)bytes, (int64_t)at_least, (int64_t)at_most);
	return NCCL_OK;
}

/* ---- memory of a new communicator ---- */

static bool is_older(void)
{
	return lib_version("nccl", 0) * 100 + lib_version("nccl", 1) < 222;
}

static bool connects_at_once(void)
{
	const char *text = getenv("NCCL_RUNTIME_CONNECT");

	return is_older() || (text && !atoi(text));
}

static bool has_nvls(const struct nccl_comm *c)
{
	const char *text = getenv("NCCL_NVLS_ENABLE");
	int node = device_physical_count();

	return (!text || atoi(text)) && card_has_nvlink() && lib_capability() >= 90 &&
	       (c->ranks < node ? c->ranks : node) >= NVLS_LEAST_RANKS;
}

static long ring_channels(void)
{
	return channels(RING_CHANNELS_NVLINK, RING_CHANNELS_PCIE);
}

static size_t receive_bytes(void)
{
	return OTHER_PROTOCOLS + environment("NCCL_BUFFSIZE", SIMPLE_BYTES);
}

/* The first and the last rank of the chain have one neighbour. */
static size_t tree_bytes(const struct nccl_comm *c)
{
	size_t each = (c->rank < c->ranks - 1 ? receive_bytes() : 0) + (c->rank ? SEND_BYTES : 0);

	return c->ranks > 2 ? ring_channels() * each : 0;
}

static size_t nvls_bytes(const struct nccl_comm *c)
{
	int node = device_physical_count();
	size_t bytes = 2 * NVLS_CHANNELS * (c->ranks < node ? c->ranks : node) * MIB;

	if (is_older())
		bytes = (bytes + MULTICAST_PAGE - 1) / MULTICAST_PAGE * MULTICAST_PAGE;
	return has_nvls(c) ? bytes : 0;
}

static size_t ring_bytes(const struct nccl_comm *c)
{
	return c->ranks > 1 ? ring_channels() * (receive_bytes() + SEND_BYTES) : 0;
}

static int connect_all(struct nccl_comm *c)
{
	const size_t network = MOST_CHANNELS * SHARED_PIECES * NODE_PIECE_BYTES;
	const size_t rest = is_older() && has_nvls(c) ? UNEXPLAINED_BYTES : 0;
	int result = take(c, network, network, network);

	if (!result)
		result = take(c, rest, 0, rest);
	if (!result)
		result = take(c, tree_bytes(c), 0, 0); /* most: counted with the ring */
	if (!result)
		result = take(c, nvls_bytes(c), 0, 0);
	c->nvls = !result;
	return result ? result : nccl_connect_ring(c);
}

int nccl_open_memory(struct nccl_comm *c)
{
	long ring = ring_channels(), pair = channels(PAIR_CHANNELS_NVLINK, PAIR_CHANNELS_PCIE);
	size_t n = pair > ring ? pair : ring, code = 0, bytes;
	int result;

	if (!ctx_load(c->device, CTX_NCCL, &code))
		return NCCL_CUDA_ERROR;
	report_usage((int64_t)code, (int64_t)code / 4 * 3, (int64_t)code / 4 * 5);
	bytes = COMM_BYTES + n * CHANNEL_BYTES + (has_nvls(c) ? ring * NVLS_CHANNEL_BYTES : 0);
	result = take(c, bytes, bytes / 2, bytes);
	return result || !connects_at_once() ? result : connect_all(c);
}

/* ---- memory at the first use ---- */

int nccl_connect_ring(struct nccl_comm *c)
{
	size_t bytes = ring_bytes(c);
	int result = NCCL_OK;

	pthread_mutex_lock(&c->lock);
	if (!c->ring)
		result = take(c, bytes, bytes / 2, bytes + tree_bytes(c) + nvls_bytes(c));
	c->ring = !result;
	pthread_mutex_unlock(&c->lock);
	return result;
}

int nccl_connect_nvls(struct nccl_comm *c, double bytes)
{
	int result = NCCL_OK;

	pthread_mutex_lock(&c->lock);
	if (!c->nvls && bytes >= NVLS_LEAST_BYTES) {
		result = take(c, nvls_bytes(c), 0, 0); /* most: counted with the ring */
		c->nvls = !result;
	}
	pthread_mutex_unlock(&c->lock);
	return result;
}

/* Ranks are numbered node by node. */
static bool is_elsewhere(const struct nccl_comm *c, int peer)
{
	int node = device_physical_count();

	return c->ranks > node && peer / node != c->rank / node;
}

/* Two pools, to send and to receive. */
static int connect_other_nodes(struct nccl_comm *c)
{
	long n = channels(PAIR_CHANNELS_NVLINK, PAIR_CHANNELS_PCIE);
	size_t each = 2 * SHARED_PIECES * environment("NCCL_P2P_NET_CHUNKSIZE", PIECE_BYTES);
	int result = c->other_nodes ? NCCL_OK : take(c, n * each, each, MOST_CHANNELS * each);

	c->other_nodes = !result;
	return result;
}

static int connect_pair(struct nccl_comm *c)
{
	size_t bytes =
		channels(PAIR_CHANNELS_NVLINK, PAIR_CHANNELS_PCIE) * (receive_bytes() + SEND_BYTES);

	return take(c, bytes, bytes / 2, bytes / 4 * 5);
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
		result = connect_pair(c);
	c->peers[peer] = !result;
	pthread_mutex_unlock(&c->lock);
	return result;
}

void nccl_give_back(struct nccl_comm *c)
{
	report_usage(-(int64_t)c->bytes, -(int64_t)c->least, -(int64_t)c->most);
	c->least = c->most = 0;
	c->other_nodes = c->nvls = false;
	while (c->buffers) {
		struct nccl_buffer *b = c->buffers;

		c->buffers = b->next;
		lib_unmap(b->ptr, b->bytes);
		free(b);
	}
	c->bytes = 0;
}
