/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL: a collective sends this rank's data at once, and ends when the others have sent theirs. No
 * thread waits in the call (core/pending.h). Each rank computes its own result, from the messages
 * of all in the order of the ranks, so that all get the same. Any thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib_nccl.h"

#define CHUNK	 16384
#define CHECK_MS 100 /* interval for checking that the others are alive */

char nccl_last_error[96];

struct exchange {
	struct pending pending; /* first */
	struct nccl_comm *comm;
	struct nccl_node *node;
	enum nccl_kind kind;
	int type, op, lane;
	uint64_t number;
	uint32_t wanted; /* the ranks whose messages it takes */
	size_t skip;	 /* offset of this rank's part in them */
	uint64_t checked_ms;
	struct nccl_message *messages[NCCL_HERE];
};

/* ---- the result ---- */

/* Reduces bytes [at, at + bytes) of all ranks' buffers. */
static void reduce_part(struct exchange *x, const struct nccl_payload *payloads, size_t at,
			size_t bytes)
{
	_Alignas(16) unsigned char total[CHUNK], data[CHUNK];
	unsigned char states[CHUNK], others[CHUNK];
	size_t size = nccl_type_bytes(x->type), n = bytes / size;
	bool first = true;

	for (int r = 0; r < x->comm->ranks; r++) {
		nccl_payload_read(&payloads[r], x->node, x->messages[r], x->skip + at,
				  first ? total : data, first ? states : others, bytes);
		if (!first)
			nccl_combine(total, states, data, others, n, x->type, x->op);
		first = false;
	}
	for (size_t i = 0; i < n; i++) { /* a number is as well known as its least known byte */
		unsigned char least = CONTENTS_KNOWN;

		for (size_t j = i * size; j < (i + 1) * size; j++)
			least = states[j] < least ? states[j] : least;
		memset(states + i * size, least, size);
		if (least == CONTENTS_UNKNOWN)
			memset(total + i * size, 0, size);
	}
	if (x->op == NCCL_AVG && nccl_is_whole(x->type))
		nccl_divide(total, n, x->type, x->comm->ranks);
	contents_result(&x->pending, at, total, states, bytes);
}

/* Calls `part` for each known stretch of one rank's buffer. The rest of the result is unknown. */
static void each_known(struct exchange *x, const struct nccl_payload *p, size_t size,
		       void (*part)(struct exchange *x, const struct nccl_payload *p, size_t at,
				    size_t bytes),
		       const struct nccl_payload *payloads)
{
	size_t done = 0, most = x->pending.bytes;

	for (const struct nccl_span *s = p->spans; s < p->spans + p->n; s++) {
		size_t from = s->at > x->skip ? s->at - x->skip : 0;
		size_t to = s->at + s->bytes > x->skip ? s->at + s->bytes - x->skip : 0;

		from = from / size * size > done ? from / size * size : done;
		to = (to + size - 1) / size * size < most ? (to + size - 1) / size * size : most;
		for (size_t at = from, n; at < to; at += n) {
			n = to - at < CHUNK ? to - at : CHUNK;
			part(x, payloads, at, n);
			done = at + n;
		}
	}
}

static void reduce(struct exchange *x)
{
	struct nccl_payload payloads[NCCL_HERE] = { 0 };
	bool known = true;

	for (int r = 0; known && r < x->comm->ranks; r++)
		known = x->messages[r]->bytes &&
			nccl_payload_open(&payloads[r], x->node, x->messages[r]);
	if (known)
		each_known(x, &payloads[0], nccl_type_bytes(x->type), reduce_part, payloads);
	for (int r = 0; r < x->comm->ranks; r++)
		nccl_payload_free(&payloads[r]);
}

/* Stores one rank's contribution at its place in the result, in pieces of equal state. */
static void store_contribution(struct exchange *x, const struct nccl_message *m, size_t at)
{
	unsigned char *data = NULL;
	struct nccl_payload p;

	if (!m->bytes || !nccl_payload_open(&p, x->node, m))
		return;
	for (const struct nccl_span *s = p.spans; s < p.spans + p.n; s++) {
		data = malloc(2 * s->bytes);
		if (!data)
			break;
		nccl_payload_read(&p, x->node, m, s->at, data, data + s->bytes, s->bytes);
		contents_result(&x->pending, at + s->at, data, data + s->bytes, s->bytes);
		free(data);
	}
	nccl_payload_free(&p);
}

/* ---- waiting for the others ---- */

static void store_result(struct exchange *x)
{
	struct nccl_comm *c = x->comm;

	if (x->kind == NCCL_REDUCE || x->kind == NCCL_SCATTER_REDUCED)
		reduce(x);
	for (int r = 0; r < c->ranks; r++) {
		if (!x->messages[r])
			continue;
		if (x->kind == NCCL_GATHER)
			store_contribution(x, x->messages[r], r * (x->pending.bytes / c->ranks));
		else if (x->kind == NCCL_BROADCAST || x->kind == NCCL_MESSAGE)
			store_contribution(x, x->messages[r], 0);
	}
}

static void fail(struct exchange *x, int rank)
{
	struct nccl_comm *c = x->comm;

	snprintf(nccl_last_error, sizeof(nccl_last_error),
		 "rank %d (process %d) has left before it took part in this", rank,
		 nccl_node_pid(x->node, rank));
	__atomic_store_n(&c->error, NCCL_REMOTE_ERROR, __ATOMIC_RELEASE);
}

/* The ranks whose messages are not there yet, as bits. */
static uint32_t missing(struct exchange *x)
{
	uint32_t none = 0;

	for (int r = 0; r < x->comm->ranks; r++) {
		if (!(x->wanted & 1u << r))
			continue;
		if (!x->messages[r])
			x->messages[r] = nccl_node_look(x->node, r, x->lane, x->number);
		if (!x->messages[r])
			none |= 1u << r;
	}
	return none;
}

static enum pending_state poll_exchange(struct pending *p)
{
	struct exchange *x = (struct exchange *)p;
	uint32_t none = missing(x);
	int gone;

	if (none) {
		if (pending_now_ms() - x->checked_ms < CHECK_MS)
			return PENDING_WAITS;
		x->checked_ms = pending_now_ms();
		gone = nccl_node_gone(x->node, none);
		none = missing(x); /* its last message may have arrived meanwhile */
		if (gone >= 0 && none & 1u << gone) {
			fail(x, gone);
			return PENDING_FAILED;
		}
	}
	if (none)
		return PENDING_WAITS;
	store_result(x);
	for (int r = 0; r < x->comm->ranks; r++)
		if (x->messages[r])
			nccl_node_take(x->node, x->messages[r]);
	return PENDING_DONE;
}

static void sleep_exchange(struct pending *p)
{
	struct exchange *x = (struct exchange *)p;
	struct nccl_node *n = nccl_node_keep(x->node);
	uint32_t bell = nccl_node_bell(n);

	if (p->state != PENDING_WAITS || missing(x)) {
		pending_unlock();
		nccl_node_sleep(n, bell);
		pending_lock();
	}
	nccl_node_let_go(n);
}

static bool idle_exchange(struct pending *p)
{
	struct exchange *x = (struct exchange *)p;

	return nccl_node_idle(x->node, missing(x));
}

static void drop_exchange(struct pending *p)
{
	struct exchange *x = (struct exchange *)p;

	nccl_node_let_go(x->node);
	free(x);
}

static bool is_of(struct pending *p, void *comm)
{
	return p->poll == poll_exchange && ((struct exchange *)p)->comm == comm;
}

void nccl_end_exchanges(struct nccl_comm *c)
{
	pending_give_up(is_of, c);
}

/* ---- beginning ---- */

/* Forgets the old contents, because the collective will overwrite them. */
static void forget(void *to, size_t bytes)
{
	if (bytes <= CHUNK)
		contents_forget((uintptr_t)to, bytes);
	else
		contents_drop((uintptr_t)to, bytes);
}

static int exchange_begin(struct nccl_comm *c, struct exchange what, void *to, size_t bytes,
			  void *stream)
{
	struct exchange *x = malloc(sizeof(*x));
	uint64_t number;

	if (!x)
		return NCCL_SYSTEM_ERROR;
	*x = what;
	x->comm = c;
	x->node = nccl_node_keep(c->node);
	x->checked_ms = pending_now_ms();
	x->pending = (struct pending){
		.device = c->device,
		.base = (uintptr_t)to,
		.bytes = bytes,
		.poll = poll_exchange,
		.sleep = sleep_exchange,
		.idle = idle_exchange,
		.drop = drop_exchange,
	};
	if (to && bytes)
		forget(to, bytes);
	pending_add(&x->pending, &number);
	stream_pends(stream, number);
	return NCCL_OK;
}

static uint64_t next(uint64_t *counter)
{
	return __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/* Returns the operator of a message. Averages and custom operators are sums of scaled values. */
static int scaled(struct nccl_payload *p, const struct nccl_call *call)
{
	struct nccl_comm *c = call->comm;
	unsigned char scalar[8] = { 0 };
	const struct nccl_op *own;

	if (call->op < NCCL_AVG || (call->op == NCCL_AVG && nccl_is_whole(call->type)))
		return call->op;
	if (call->op == NCCL_AVG) {
		nccl_one_over(scalar, call->type, c->ranks);
		nccl_payload_scale(p, call->type, scalar);
		return NCCL_SUM;
	}
	own = &c->ops[(call->op - NCCL_OWN) % NCCL_OPS];
	if (own->known)
		nccl_payload_scale(p, call->type, own->scalar);
	else
		nccl_payload_free(p);
	return NCCL_SUM;
}

/* Decides which ranks send to which, how much, and where each part lies. */
int nccl_exchange(enum nccl_kind kind, const struct nccl_call *call)
{
	struct nccl_comm *c = call->comm;
	size_t bytes = call->count * nccl_type_bytes(call->type);
	uint32_t all = (1u << c->ranks) - 1;
	bool to_one = kind == NCCL_REDUCE && call->root >= 0;
	bool gives = kind != NCCL_BROADCAST || c->rank == call->root;
	bool in_place = kind == NCCL_BROADCAST && call->from == call->to;
	uint32_t readers = to_one ? 1u << call->root : in_place ? all & ~(1u << c->rank) : all;
	struct exchange x = { .kind = kind, .type = call->type, .lane = NCCL_LANE_ALL };
	struct nccl_payload p = { 0 };

	x.number = next(&c->collectives);
	x.op = call->op;
	if (gives) {
		nccl_payload_of(&p, call->from,
				kind == NCCL_SCATTER_REDUCED ? bytes * c->ranks : bytes);
		if (kind == NCCL_REDUCE || kind == NCCL_SCATTER_REDUCED)
			x.op = scaled(&p, call);
		nccl_payload_send(&p, c->node, NCCL_LANE_ALL, x.number,
				  (struct nccl_message){ .count = call->count,
							 .kind = kind,
							 .type = call->type,
							 .op = x.op,
							 .readers = readers });
	}
	if ((to_one && c->rank != call->root) || (in_place && gives))
		return NCCL_OK;
	x.wanted = kind == NCCL_BROADCAST ? 1u << call->root : all;
	x.skip = kind == NCCL_SCATTER_REDUCED ? bytes * c->rank : 0;
	return exchange_begin(c, x, call->to, kind == NCCL_GATHER ? bytes * c->ranks : bytes,
			      call->stream);
}

int nccl_send(struct nccl_comm *c, const void *from, size_t bytes, int peer)
{
	struct nccl_message m = { .count = bytes, .kind = NCCL_MESSAGE, .readers = 1u << peer };
	struct nccl_payload p;

	nccl_payload_of(&p, from, bytes);
	nccl_payload_send(&p, c->node, peer, next(&c->sends[peer]), m);
	return NCCL_OK;
}

int nccl_receive(struct nccl_comm *c, void *to, size_t bytes, int peer, void *stream)
{
	struct exchange x = { .kind = NCCL_MESSAGE, .wanted = 1u << peer, .lane = c->rank };

	x.number = next(&c->receives[peer]);
	return exchange_begin(c, x, to, bytes, stream);
}
