/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL: what a communicator carries. A collective does to small buffers what it would if every
 * other rank had sent the same as this one (sums are not multiplied), so that frameworks that
 * compare shapes and counts between ranks find them equal. Any thread.
 */
#include "lib_nccl.h"

static size_t type_bytes(int type)
{
	static const unsigned char bytes[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };

	return type >= 0 && type < (int)sizeof(bytes) ? bytes[type] : 0;
}

/* A rank whose memory is not written. */
static int take_part(struct nccl_comm *c, void *stream)
{
	lib_launch(stream);
	return nccl_connect_ring(c);
}

/* One buffer to another, or to a slot of another for each rank. */
static int copy(void *comm, void *to, const void *from, size_t count, int type, void *stream,
		bool each_rank)
{
	struct nccl_comm *c = nccl_check(comm);
	size_t bytes = count * type_bytes(type);
	int result;

	if (!c || !type_bytes(type) || (bytes && (!to || !from)))
		return NCCL_INVALID;
	result = nccl_connect_ring(c);
	lib_launch(stream);
	for (int i = 0; !result && bytes && i < (each_rank ? c->ranks : 1); i++)
		if ((char *)to + i * bytes != from)
			sim_copy((char *)to + i * bytes, from, bytes);
	return result;
}

static int carry(void *comm, void *to, const void *from, size_t count, int type, void *stream)
{
	return copy(comm, to, from, count, type, stream, false);
}

static int spread(void *comm, void *to, const void *from, size_t count, int type, void *stream)
{
	return copy(comm, to, from, count, type, stream, true);
}

API(int, ncclAllReduce, const void *from, void *to, size_t count, int type, int op, void *comm,
    void *stream)
{
	(void)op;
	return carry(comm, to, from, count, type, stream);
}

API(int, ncclReduce, const void *from, void *to, size_t count, int type, int op, int root,
    void *comm, void *stream)
{
	struct nccl_comm *c = nccl_check(comm);

	(void)op;
	if (c && c->rank != root)
		return take_part(c, stream);
	return carry(comm, to, from, count, type, stream);
}

API(int, ncclBroadcast, const void *from, void *to, size_t count, int type, int root, void *comm,
    void *stream)
{
	struct nccl_comm *c = nccl_check(comm);
	size_t bytes = count * type_bytes(type);

	if (c && c->rank == root)
		nccl_group_send(c, from, bytes);
	else if (c)
		nccl_group_receive(c, to, bytes);
	if (c && c->rank != root && (!from || from == to))
		return take_part(c, stream);
	return carry(comm, to, from, count, type, stream);
}

API(int, ncclBcast, void *buffer, size_t count, int type, int root, void *comm, void *stream)
{
	(void)root;
	return carry(comm, buffer, buffer, count, type, stream);
}

API(int, ncclReduceScatter, const void *from, void *to, size_t count, int type, int op, void *comm,
    void *stream)
{
	struct nccl_comm *c = nccl_check(comm);
	size_t skip = c ? c->rank * count * type_bytes(type) : 0;

	(void)op;
	return carry(comm, to, from ? (const char *)from + skip : NULL, count, type, stream);
}

API(int, ncclAllGather, const void *from, void *to, size_t count, int type, void *comm,
    void *stream)
{
	return spread(comm, to, from, count, type, stream);
}

API(int, ncclGather, const void *from, void *to, size_t count, int type, int root, void *comm,
    void *stream)
{
	struct nccl_comm *c = nccl_check(comm);

	if (c && c->rank != root)
		return take_part(c, stream);
	return spread(comm, to, from, count, type, stream);
}

API(int, ncclScatter, const void *from, void *to, size_t count, int type, int root, void *comm,
    void *stream)
{
	struct nccl_comm *c = nccl_check(comm);
	size_t skip = c ? c->rank * count * type_bytes(type) : 0;

	if (c && c->rank != root)
		return take_part(c, stream);
	return carry(comm, to, from ? (const char *)from + skip : NULL, count, type, stream);
}

API(int, ncclAlltoAll, const void *from, void *to, size_t count, int type, void *comm, void *stream)
{
	struct nccl_comm *c = nccl_check(comm);
	int result = NCCL_OK;

	if (!c)
		return NCCL_INVALID;
	for (int i = 0; !result && i < c->ranks; i++)
		result = nccl_connect_peer(c, i);
	return result ? result : carry(comm, to, from, count * c->ranks, type, stream);
}

API(int, ncclSend, const void *from, size_t count, int type, int peer, void *comm, void *stream)
{
	struct nccl_comm *c = nccl_check(comm);

	if (!c)
		return NCCL_INVALID;
	nccl_group_send(c, from, count * type_bytes(type));
	lib_launch(stream);
	return nccl_connect_peer(c, peer);
}

API(int, ncclRecv, void *to, size_t count, int type, int peer, void *comm, void *stream)
{
	struct nccl_comm *c = nccl_check(comm);

	if (!c)
		return NCCL_INVALID;
	sim_forget(to);
	nccl_group_receive(c, to, count * type_bytes(type));
	lib_launch(stream);
	return nccl_connect_peer(c, peer);
}

/* ---- memory and operators ---- */

/* NCCL keeps the sizes of what it hands out; so must we, as unmapping asks for them. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct nccl_buffer *handed_out;

API(int, ncclMemAlloc, void **out, size_t bytes)
{
	struct nccl_buffer *b = out ? sim_handle(NCCL_COMM, sizeof(*b)) : NULL;

	if (!b)
		return out ? NCCL_SYSTEM_ERROR : NCCL_INVALID;
	b->ptr = lib_map(bytes);
	if (!b->ptr) {
		sim_handle_free(b);
		return NCCL_CUDA_ERROR;
	}
	b->bytes = bytes;
	*out = b->ptr;
	pthread_mutex_lock(&lock);
	b->next = handed_out;
	handed_out = b;
	pthread_mutex_unlock(&lock);
	return NCCL_OK;
}

API(int, ncclMemFree, void *ptr)
{
	struct nccl_buffer **p, *b;

	if (!ptr)
		return NCCL_OK;
	pthread_mutex_lock(&lock);
	for (p = &handed_out; *p && (*p)->ptr != ptr; p = &(*p)->next)
		;
	b = *p;
	if (b)
		*p = b->next;
	pthread_mutex_unlock(&lock);
	if (!b)
		return NCCL_INVALID;
	lib_unmap(b->ptr, b->bytes);
	sim_handle_free(b);
	return NCCL_OK;
}

API(int, ncclCommRegister, const void *comm, void *buffer, size_t bytes, void **handle)
{
	(void)bytes;
	if (!nccl_check(comm) || !handle)
		return NCCL_INVALID;
	*handle = buffer;
	return NCCL_OK;
}

API(int, ncclCommWindowRegister, void *comm, void *buffer, size_t bytes, void **window, int flags)
{
	(void)bytes, (void)flags;
	if (!nccl_check(comm) || !window)
		return NCCL_INVALID;
	*window = buffer;
	return NCCL_OK;
}

/* A window is its buffer's address, and every peer's view of it is this rank's own. */
API(int, ncclWinGetUserPtr, void *comm, void *window, void **out)
{
	if (!nccl_check(comm) || !out)
		return NCCL_INVALID;
	*out = window;
	return NCCL_OK;
}

#define VIEW(name, ...)                                                     \
	API(int, name, void *window, size_t offset, __VA_ARGS__ void **out) \
	{                                                                   \
		if (!window || !out)                                        \
			return NCCL_INVALID;                                \
		*out = (char *)window + offset;                             \
		return NCCL_OK;                                             \
	}
#define PEER __attribute__((unused)) int peer,

VIEW(ncclGetPeerDevicePointer, PEER)
VIEW(ncclGetLsaDevicePointer, PEER)

/* There is no multicast memory here. */
API(int, ncclGetLsaMultimemDevicePointer, void *window, size_t offset, void **out)
{
	(void)window, (void)offset;
	if (!out)
		return NCCL_INVALID;
	*out = NULL;
	return NCCL_OK;
}

API(int, ncclRedOpCreatePreMulSum, int *op, void *scalar, int type, int where, void *comm)
{
	(void)scalar, (void)type, (void)where;
	if (!nccl_check(comm) || !op)
		return NCCL_INVALID;
	*op = 5;
	return NCCL_OK;
}

API(int, ncclGroupSimulateEnd, void *info)
{
	return info ? NCCL_OK : NCCL_INVALID;
}
