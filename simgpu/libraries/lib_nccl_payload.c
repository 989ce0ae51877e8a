/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL: a buffer as it is sent: its known stretches and their bytes. Of an unknown buffer nothing
 * is sent, however large it is. Any thread.
 */
#include <stdlib.h>
#include <string.h>
#include "lib_nccl.h"

#define CHUNK 65536
#define MOST  ((size_t)256 << 20) /* bytes; the rest is unknown */

/* ---- from a buffer ---- */

static void *grow(void *p, size_t *room, size_t need, size_t size)
{
	size_t more = *room ? *room : 16;
	void *q;

	if (need <= *room)
		return p;
	while (more < need)
		more *= 2;
	q = realloc(p, more * size);
	if (q)
		*room = more;
	return q;
}

static bool add_piece(struct nccl_payload *p, uint64_t at, const unsigned char *data, size_t bytes,
		      unsigned char state)
{
	struct nccl_span *last = p->n ? &p->spans[p->n - 1] : NULL;
	void *grown;

	if (p->bytes + bytes > MOST)
		return false;
	grown = grow(p->data, &p->data_room, p->bytes + bytes, 1);
	if (!grown)
		return false;
	p->data = grown;
	memcpy(p->data + p->bytes, data, bytes);
	if (last && last->state == state && last->at + last->bytes == at) {
		last->bytes += bytes;
	} else {
		grown = grow(p->spans, &p->room, p->n + 1, sizeof(*p->spans));
		if (!grown)
			return false;
		p->spans = grown;
		p->spans[p->n++] = (struct nccl_span){ at, bytes, p->bytes, state };
	}
	p->bytes += bytes;
	return true;
}

static bool add_chunk(struct nccl_payload *p, const char *from, size_t at, size_t bytes)
{
	unsigned char data[CHUNK], states[CHUNK];

	if (sim_is_device_ptr(from)) {
		contents_read(from + at, data, states, bytes);
	} else {
		memcpy(data, from + at, bytes);
		memset(states, CONTENTS_KNOWN, bytes);
	}
	for (size_t i = 0, n; i < bytes; i += n) {
		for (n = 1; i + n < bytes && states[i + n] == states[i]; n++)
			;
		if (states[i] != CONTENTS_UNKNOWN && !add_piece(p, at + i, data + i, n, states[i]))
			return false;
	}
	return true;
}

void nccl_payload_of(struct nccl_payload *p, const void *from, size_t bytes)
{
	bool device = sim_is_device_ptr(from);
	size_t at = 0, length = bytes;

	*p = (struct nccl_payload){ 0 };
	for (; at < bytes && (!device || contents_next(from, bytes, &at, &length)); at += length)
		for (size_t i = 0, n; i < length; i += n) {
			n = length - i < CHUNK ? length - i : CHUNK;
			if (!add_chunk(p, from, at + i, n))
				return;
		}
}

/* A span that cuts a number becomes unknown. */
void nccl_payload_scale(struct nccl_payload *p, int type, const void *scalar)
{
	size_t size = nccl_type_bytes(type);

	for (struct nccl_span *s = p->spans; s < p->spans + p->n; s++) {
		unsigned char *data = p->data + s->offset;
		uint64_t number;

		if (s->at % size || s->bytes % size)
			s->state = CONTENTS_UNKNOWN;
		for (size_t i = 0; i + size <= s->bytes; i += size) {
			memcpy(&number, data + i, size);
			nccl_scale(&number, 1, type, scalar);
			memcpy(data + i, &number, size);
		}
	}
}

/* The message's payload: the number of spans, the spans, their bytes. */
void nccl_payload_send(struct nccl_payload *p, struct nccl_node *n, int lane, uint64_t number,
		       struct nccl_message m)
{
	size_t head_bytes = sizeof(uint64_t) + p->n * sizeof(*p->spans);
	unsigned char *head = p->n ? malloc(head_bytes) : NULL;
	uint64_t spans = p->n;

	if (head) {
		memcpy(head, &spans, sizeof(spans));
		memcpy(head + sizeof(spans), p->spans, p->n * sizeof(*p->spans));
	}
	nccl_node_send(n, lane, number, m, head, head_bytes, p->data, head ? p->bytes : 0);
	free(head);
	nccl_payload_free(p);
}

/* ---- from a message ---- */

bool nccl_payload_open(struct nccl_payload *p, struct nccl_node *n, const struct nccl_message *m)
{
	uint64_t spans = 0;

	*p = (struct nccl_payload){ 0 };
	if (!m->bytes)
		return true;
	if (!nccl_node_read(n, m, 0, &spans, sizeof(spans)) ||
	    spans > m->bytes / sizeof(struct nccl_span))
		return false;
	p->spans = calloc(spans + 1, sizeof(*p->spans));
	if (!p->spans || !nccl_node_read(n, m, sizeof(spans), p->spans, spans * sizeof(*p->spans)))
		return false;
	p->n = spans;
	p->bytes = sizeof(spans) + spans * sizeof(*p->spans); /* where the data begins */
	return true;
}

void nccl_payload_read(const struct nccl_payload *p, struct nccl_node *n,
		       const struct nccl_message *m, size_t at, unsigned char *data,
		       unsigned char *states, size_t bytes)
{
	size_t low = 0, high = p->n;

	memset(data, 0, bytes);
	memset(states, CONTENTS_UNKNOWN, bytes);
	while (low < high) { /* the first that ends after `at` */
		size_t middle = (low + high) / 2;

		if (p->spans[middle].at + p->spans[middle].bytes > at)
			high = middle;
		else
			low = middle + 1;
	}
	for (const struct nccl_span *s = p->spans + low; s < p->spans + p->n && s->at < at + bytes;
	     s++) {
		size_t from = s->at > at ? s->at : at;
		size_t to = s->at + s->bytes < at + bytes ? s->at + s->bytes : at + bytes;

		if (from < to && nccl_node_read(n, m, p->bytes + s->offset + (from - s->at),
						data + (from - at), to - from))
			memset(states + (from - at), s->state, to - from);
	}
}

void nccl_payload_free(struct nccl_payload *p)
{
	free(p->spans);
	free(p->data);
	*p = (struct nccl_payload){ 0 };
}
