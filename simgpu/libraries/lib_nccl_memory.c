/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL: device memory of a communicator, an approximation of what has been reported for NVLink
 * machines (figures of NCCL's public issue tracker): a receive buffer of 10 MiB (three protocols)
 * and a send area of 2 MiB for each channel and connection, taken when a ring or a pair is first
 * used, and a few megabytes at once. NCCL_MAX_NCHANNELS and NCCL_BUFFSIZE act as they do on the
 * real one. A communicator of one rank needs none of that. Any thread.
 */
#include <stdlib.h>
#include "lib_nccl.h"

#define RING_CHANNELS_NVLINK 24
#define RING_CHANNELS_PCIE   4
#define PAIR_CHANNELS_NVLINK 32
#define PAIR_CHANNELS_PCIE   2
#define SIMPLE_BYTES	     (4 * MIB)
#define OTHER_PROTOCOLS	     (6 * MIB)
#define SEND_BYTES	     (2 * MIB)

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
	return NCCL_OK;
}

static int connect_channels(struct nccl_comm *c, long n)
{
	size_t receive = OTHER_PROTOCOLS + environment("NCCL_BUFFSIZE", SIMPLE_BYTES);
	int result = NCCL_OK;

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

void nccl_give_back(struct nccl_comm *c)
{
	while (c->buffers) {
		struct nccl_buffer *b = c->buffers;

		c->buffers = b->next;
		lib_unmap(b->ptr, b->bytes);
		free(b);
	}
	c->bytes = 0;
}
