/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL: the functions for collectives, messages, memory and operators. A call that is recorded into
 * a graph takes effect when the graph is launched. Any thread.
 */
#include <string.h>
#include "lib_nccl.h"

/* Bytes moved by all ranks of a ring; a sum goes round twice. */
static double moved(enum nccl_kind kind, const struct nccl_comm *c, const struct nccl_call *call)
{
	double bytes = (double)call->count * (double)nccl_type_bytes(call->type);

	switch (kind) {
	case NCCL_REDUCE:
		return call->root < 0 ? 2 * bytes : bytes;
	case NCCL_BROADCAST:
		return bytes;
	default:
		return bytes * c->ranks;
	}
}

struct recorded {
	struct act act;
	enum nccl_kind kind;
	bool send; /* for messages */
	struct nccl_call call;
};

static int start(enum nccl_kind kind, bool send, const struct nccl_call *call)
{
	struct nccl_comm *c = call->comm;

	if (kind != NCCL_MESSAGE)
		return c->node ? nccl_exchange(kind, call) : nccl_alone(kind, call);
	if (c->node)
		return send ? nccl_send(c, call->from, call->count, call->root)
			    : nccl_receive(c, call->to, call->count, call->root, call->stream);
	return send ? nccl_alone_send(c, call->from, call->count, call->root)
		    : nccl_alone_receive(c, call->to, call->count, call->root);
}

/* The communicator may be destroyed by now. */
static void run(struct act *act, void *stream)
{
	struct recorded *r = (struct recorded *)act;
	struct nccl_call call = r->call;

	call.stream = stream;
	if (nccl_check(call.comm))
		start(r->kind, r->send, &call);
}

static int start_or_record(enum nccl_kind kind, bool send, const struct nccl_call *call)
{
	struct recorded *r;

	if (!sim_capturing(call->stream))
		return start(kind, send, call);
	r = (struct recorded *)act_new(sizeof(*r), run);
	if (!r)
		return NCCL_SYSTEM_ERROR;
	r->kind = kind;
	r->send = send;
	r->call = *call;
	capture_act(call->stream, &r->act);
	return NCCL_OK;
}

static const char *const kernels[] = {
	[NCCL_REDUCE] = "ncclDevKernel_AllReduce",
	[NCCL_SCATTER_REDUCED] = "ncclDevKernel_ReduceScatter",
	[NCCL_GATHER] = "ncclDevKernel_AllGather",
	[NCCL_BROADCAST] = "ncclDevKernel_Broadcast",
};

static int collective(enum nccl_kind kind, const struct nccl_call *call)
{
	struct nccl_comm *c = nccl_check(call->comm);
	int result;

	if (!c || !nccl_type_bytes(call->type) || call->root >= c->ranks ||
	    (call->count && !call->from && !call->to))
		return NCCL_INVALID;
	result = nccl_connect_ring(c);
	if (!result && kind == NCCL_REDUCE && call->root < 0)
		result = nccl_connect_nvls(c, moved(kind, c, call) / 2);
	lib_collective(kernels[kind], call->stream, moved(kind, c, call), c->ranks);
	return result || !call->count ? result : start_or_record(kind, false, call);
}

#define CALL(...) (&(struct nccl_call){ .comm = comm, .stream = stream, __VA_ARGS__ })
#define WHAT	  .from = from, .to = to, .count = count, .type = type

API_CALL(int, ncclAllReduce, collective(NCCL_REDUCE, CALL(WHAT, .op = op, .root = -1)),
	 const void *from, void *to, size_t count, int type, int op, void *comm, void *stream)
API_CALL(int, ncclReduce, collective(NCCL_REDUCE, CALL(WHAT, .op = op, .root = root)),
	 const void *from, void *to, size_t count, int type, int op, int root, void *comm,
	 void *stream)
API_CALL(int, ncclBroadcast, collective(NCCL_BROADCAST, CALL(WHAT, .root = root)), const void *from,
	 void *to, size_t count, int type, int root, void *comm, void *stream)
API_CALL(int, ncclBcast, ncclBroadcast(buffer, buffer, count, type, root, comm, stream),
	 void *buffer, size_t count, int type, int root, void *comm, void *stream)
API_CALL(int, ncclReduceScatter, collective(NCCL_SCATTER_REDUCED, CALL(WHAT, .op = op, .root = -1)),
	 const void *from, void *to, size_t count, int type, int op, void *comm, void *stream)
API_CALL(int, ncclAllGather, collective(NCCL_GATHER, CALL(WHAT, .root = -1)), const void *from,
	 void *to, size_t count, int type, void *comm, void *stream)

/* ---- messages ---- */

static int message(bool send, const void *from, void *to, size_t bytes, int peer, void *comm,
		   void *stream)
{
	struct nccl_call call = { comm, from, to, bytes, 0, 0, peer, stream };
	struct nccl_comm *c = nccl_check(comm);
	int result;

	if (!c)
		return NCCL_INVALID;
	result = nccl_connect_peer(c, peer);
	lib_collective("ncclDevKernel_SendRecv", stream, (double)bytes, c->ranks);
	return result || !bytes ? result : start_or_record(NCCL_MESSAGE, send, &call);
}

API(int, ncclSend, const void *from, size_t count, int type, int peer, void *comm, void *stream)
{
	return message(true, from, NULL, count * nccl_type_bytes(type), peer, comm, stream);
}

API(int, ncclRecv, void *to, size_t count, int type, int peer, void *comm, void *stream)
{
	return message(false, NULL, to, count * nccl_type_bytes(type), peer, comm, stream);
}

/* Collectives that NCCL builds from send and receive. */
API(int, ncclAlltoAll, const void *from, void *to, size_t count, int type, void *comm, void *stream)
{
	struct nccl_comm *c = nccl_check(comm);
	size_t bytes = count * nccl_type_bytes(type);
	int result = ncclGroupStart();

	if (!c)
		result = NCCL_INVALID;
	for (int i = 0; !result && i < c->ranks; i++)
		result =
			message(true, (const char *)from + i * bytes, NULL, bytes, i, comm, stream);
	for (int i = 0; !result && i < c->ranks; i++)
		result = message(false, NULL, (char *)to + i * bytes, bytes, i, comm, stream);
	ncclGroupEnd();
	return result;
}

API(int, ncclGather, const void *from, void *to, size_t count, int type, int root, void *comm,
    void *stream)
{
	struct nccl_comm *c = nccl_check(comm);
	size_t bytes = count * nccl_type_bytes(type);
	int result = ncclGroupStart();

	if (!c || root < 0 || root >= c->ranks)
		result = NCCL_INVALID;
	if (!result)
		result = message(true, from, NULL, bytes, root, comm, stream);
	for (int i = 0; !result && c->rank == root && i < c->ranks; i++)
		result = message(false, NULL, (char *)to + i * bytes, bytes, i, comm, stream);
	ncclGroupEnd();
	return result;
}

API(int, ncclScatter, const void *from, void *to, size_t count, int type, int root, void *comm,
    void *stream)
{
	struct nccl_comm *c = nccl_check(comm);
	size_t bytes = count * nccl_type_bytes(type);
	int result = ncclGroupStart();

	if (!c || root < 0 || root >= c->ranks)
		result = NCCL_INVALID;
	for (int i = 0; !result && c->rank == root && i < c->ranks; i++)
		result =
			message(true, (const char *)from + i * bytes, NULL, bytes, i, comm, stream);
	if (!result)
		result = message(false, NULL, to, bytes, root, comm, stream);
	ncclGroupEnd();
	return result;
}

/* ---- memory and operators ---- */

/* Sizes of allocations, which NCCL remembers too, because unmapping needs them. */
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

/* A window is its buffer's address. Each peer's view of it is this rank's own buffer. */
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

/* where: 0: the scalar is on the device; else on the host. It is read now. */
API(int, ncclRedOpCreatePreMulSum, int *op, void *scalar, int type, int where, void *comm)
{
	struct nccl_comm *c = nccl_check(comm);
	size_t bytes = nccl_type_bytes(type);
	int i = 0;

	if (!c || !op || !scalar || !bytes)
		return NCCL_INVALID;
	pthread_mutex_lock(&c->lock);
	while (i < NCCL_OPS && c->ops[i].used)
		i++;
	if (i < NCCL_OPS)
		c->ops[i].used = true;
	pthread_mutex_unlock(&c->lock);
	if (i == NCCL_OPS)
		return NCCL_SYSTEM_ERROR;
	c->ops[i].known = where != 0 || contents_look(c->ops[i].scalar, scalar, 0, bytes);
	if (where)
		memcpy(c->ops[i].scalar, scalar, bytes);
	*op = NCCL_OWN + i;
	return NCCL_OK;
}

API(int, ncclRedOpDestroy, int op, void *comm)
{
	struct nccl_comm *c = nccl_check(comm);

	if (!c || op < NCCL_OWN || op >= NCCL_OWN + NCCL_OPS || !c->ops[op - NCCL_OWN].used)
		return NCCL_INVALID;
	c->ops[op - NCCL_OWN].used = false;
	return NCCL_OK;
}

API_CALL(int, ncclGroupSimulateEnd, info ? NCCL_OK : NCCL_INVALID, void *info)
