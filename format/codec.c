/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event's record: length, kind, mask of what differs from its prediction, time, then only what
 * differs. Encoder and decoder share predict() and remember(), so they cannot drift apart.
 * Pure: no allocation, no state but the caller's.
 */
#include <string.h>

#include "codec.h"
#include "varint.h"

/* What the mask says: the value follows; else it is as predicted. */
enum {
	M_STACK = 1 << 0,
	M_SCOPE = 1 << 1,
	M_NAME = 1 << 2,
	M_ARG0 = 1 << 3,
	M_ARG1 = 1 << 4,
	M_SEQ = 1 << 5,
	M_THREAD = 1 << 6,
	M_FLAGS = 1 << 7,
	M_STREAM = 1 << 8,
	M_DEVICE = 1 << 9,
};

#define LAST_PLACE_KIND 39 /* kinds above it look addresses up but do not enter them */

/* The kinds of one group predict each other; NULL for kinds that came after version 1. */
static struct gmt_event *group_of(struct gmt_codec *c, unsigned kind)
{
	if (kind == GMT_BLOCK_FREE || kind == GMT_BLOCK_OOM)
		kind = GMT_BLOCK_ALLOC;
	return kind < GMT_CODEC_GROUPS ? &c->last[kind] : NULL;
}

static unsigned place_of(uint64_t addr)
{
	return (unsigned)(addr * 0x9e3779b97f4a7c15ULL >> 52);
}

/* The running total of the framework's bytes follows from each event's size. */
static uint64_t predict_arg0(const struct gmt_event *last, unsigned kind, uint64_t size)
{
	if (kind == GMT_BLOCK_ALLOC)
		return last->arg0 + size;
	if (kind == GMT_BLOCK_FREE)
		return last->arg0 - size;
	return last->arg0;
}

static void remember(struct gmt_codec *c, struct gmt_event *last, unsigned fields,
		     const struct gmt_event *e)
{
	unsigned place = place_of(e->addr);

	if (fields & F_ADDR)
		last->addr = e->addr;
	if (fields & F_ARG0)
		last->arg0 = e->arg0;
	if (fields & F_ARG1)
		last->arg1 = e->arg1;
	if (fields & F_STREAM)
		last->stream = e->stream;
	if (fields & F_NAME)
		last->name = e->name;
	if (fields & F_SCOPE)
		last->scope = e->scope;
	if (fields & F_DEVICE)
		last->device = e->device;
	if (fields & F_STACK)
		last->stack = e->stack;
	if ((fields & F_ADDR) && (fields & F_SIZE) && e->kind <= LAST_PLACE_KIND) {
		c->place[place].addr = e->addr;
		c->place[place].size = e->size;
	}
}

static unsigned mask_of(const struct gmt_event *last, unsigned fields, const struct gmt_event *e)
{
	unsigned m = 0;

	if ((fields & F_STACK) && e->stack != last->stack)
		m |= M_STACK;
	if ((fields & F_SCOPE) && e->scope != last->scope)
		m |= M_SCOPE;
	if ((fields & F_NAME) && e->name != last->name)
		m |= M_NAME;
	if ((fields & F_ARG0) &&
	    e->arg0 != predict_arg0(last, e->kind, fields & F_SIZE ? e->size : 0))
		m |= M_ARG0;
	if ((fields & F_ARG1) && e->arg1 != last->arg1)
		m |= M_ARG1;
	if ((fields & F_STREAM) && e->stream != last->stream)
		m |= M_STREAM;
	if ((fields & F_DEVICE) && e->device != last->device)
		m |= M_DEVICE;
	return m;
}

/* 0: address and size follow; 1 + 2 x place: both as remembered; 2 + 2 x place: only the address.
 */
static uint8_t *put_addr(struct gmt_codec *c, const struct gmt_event *last, unsigned fields,
			 const struct gmt_event *e, uint8_t *p)
{
	unsigned place = place_of(e->addr);
	bool known = (fields & F_ADDR) && e->addr && c->place[place].addr == e->addr;
	bool same = known && (!(fields & F_SIZE) || c->place[place].size == e->size);

	if (fields & F_ADDR)
		p = put_varint(p, known ? 1 + 2 * place + !same : 0);
	if ((fields & F_ADDR) && !known)
		p = put_packed(p, zigzag(e->addr - last->addr));
	if ((fields & F_SIZE) && !same)
		p = put_packed(p, e->size);
	return p;
}

static uint8_t *put_fields(struct gmt_codec *c, const struct gmt_event *last, unsigned fields,
			   unsigned m, const struct gmt_event *e, uint8_t *p)
{
	p = put_addr(c, last, fields, e, p);
	if (m & M_ARG0)
		p = put_varint(p, zigzag(e->arg0 - last->arg0));
	if (m & M_ARG1)
		p = put_varint(p, zigzag(e->arg1 - last->arg1));
	if (m & M_STREAM)
		p = put_varint(p, e->stream);
	if (m & M_NAME)
		p = put_varint(p, e->name);
	if (m & M_SCOPE)
		p = put_varint(p, zigzag((uint64_t)e->scope - last->scope));
	if (m & M_DEVICE)
		p = put_varint(p, zigzag((uint64_t)(int64_t)e->device));
	if (m & M_STACK)
		p = put_varint(p, e->stack);
	return p;
}

size_t gmt_encode_event(struct gmt_codec *c, const struct gmt_event *e, uint8_t *out)
{
	struct gmt_event *last = group_of(c, e->kind);
	unsigned fields = last ? gmt_kind_fields(e->kind) : 0;
	unsigned m = fields ? mask_of(last, fields, e) : 0;
	uint8_t *p = out + 1;

	m |= e->seq != c->seq + 1 ? M_SEQ : 0;
	m |= e->thread != c->thread ? M_THREAD : 0;
	m |= e->flags ? M_FLAGS : 0;
	p = put_varint(p, e->kind);
	p = put_varint(p, m);
	p = put_varint(p, zigzag(e->time_ns - c->time_ns));
	if (m & M_SEQ)
		p = put_varint(p, zigzag(e->seq - c->seq));
	if (m & M_THREAD)
		p = put_varint(p, e->thread);
	if (m & M_FLAGS)
		p = put_varint(p, e->flags);
	if (fields) {
		p = put_fields(c, last, fields, m, e, p);
		remember(c, last, fields, e);
	}
	c->seq = e->seq;
	c->time_ns = e->time_ns;
	c->thread = e->thread;
	out[0] = (uint8_t)(p - out - 1);
	return (size_t)(p - out);
}

static void get_addr(struct gmt_codec *c, const struct gmt_event *last, unsigned fields,
		     struct cursor *in, struct gmt_event *e)
{
	uint64_t token = fields & F_ADDR ? get_varint(in) : 0;
	uint64_t place = token ? (token - 1) / 2 : 0;
	bool same = token & 1;

	if (place >= GMT_CODEC_PLACES) {
		in->bad = true;
		return;
	}
	if (token)
		e->addr = c->place[place].addr;
	else if (fields & F_ADDR)
		e->addr = last->addr + unzigzag(get_packed(in));
	if (fields & F_SIZE)
		e->size = same ? c->place[place].size : get_packed(in);
}

/* The members as predicted; what the mask names is then read over them. */
static void predict(const struct gmt_event *last, unsigned fields, struct gmt_event *e)
{
	e->stack = fields & F_STACK ? last->stack : 0;
	e->scope = fields & F_SCOPE ? last->scope : 0;
	e->name = fields & F_NAME ? last->name : 0;
	e->arg0 = fields & F_ARG0 ? predict_arg0(last, e->kind, e->size) : 0;
	e->arg1 = fields & F_ARG1 ? last->arg1 : 0;
	e->stream = fields & F_STREAM ? last->stream : 0;
	e->device = fields & F_DEVICE ? last->device : -1;
}

/* The mask without what the kind does not carry: nothing was written for it. */
static unsigned carried(unsigned fields, unsigned m)
{
	static const unsigned bits[][2] = {
		{ F_STACK, M_STACK },	{ F_SCOPE, M_SCOPE }, { F_NAME, M_NAME },
		{ F_ARG0, M_ARG0 },	{ F_ARG1, M_ARG1 },   { F_STREAM, M_STREAM },
		{ F_DEVICE, M_DEVICE },
	};

	for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
		if (!(fields & bits[i][0]))
			m &= ~bits[i][1];
	return m;
}

static void get_fields(const struct gmt_event *last, unsigned m, struct cursor *in,
		       struct gmt_event *e)
{
	if (m & M_ARG0)
		e->arg0 = last->arg0 + unzigzag(get_varint(in));
	if (m & M_ARG1)
		e->arg1 = last->arg1 + unzigzag(get_varint(in));
	if (m & M_STREAM)
		e->stream = get_varint(in);
	if (m & M_NAME)
		e->name = get_varint32(in);
	if (m & M_SCOPE)
		e->scope = (uint32_t)(last->scope + unzigzag(get_varint(in)));
	if (m & M_DEVICE)
		e->device = (int32_t)unzigzag(get_varint(in));
	if (m & M_STACK)
		e->stack = get_varint32(in);
}

static unsigned get_common(struct gmt_codec *c, struct cursor *in, struct gmt_event *e)
{
	uint64_t kind = get_varint(in);
	uint64_t m = get_varint(in);

	*e = (struct gmt_event){ .device = -1, .kind = (uint16_t)kind };
	e->time_ns = c->time_ns + unzigzag(get_varint(in));
	e->seq = m & M_SEQ ? c->seq + unzigzag(get_varint(in)) : c->seq + 1;
	e->thread = m & M_THREAD ? get_varint32(in) : c->thread;
	if (m & M_FLAGS) {
		uint32_t flags = get_varint32(in);

		in->bad |= flags > UINT16_MAX;
		e->flags = (uint16_t)flags;
	}
	in->bad |= kind == 0 || kind > UINT16_MAX;
	return (unsigned)m;
}

long gmt_decode_event(struct gmt_codec *c, const uint8_t *in, size_t len, struct gmt_event *out)
{
	struct cursor cur = { in + 1, in + 1, false };
	struct gmt_event *last;
	unsigned m, fields;

	if (len < 1 || in[0] >= GMT_EVENT_MAX || (size_t)in[0] + 1 > len)
		return -GMT_ERR_BAD_RECORD;
	cur.end = in + 1 + in[0];
	m = get_common(c, &cur, out);
	last = group_of(c, out->kind);
	fields = last ? gmt_kind_fields(out->kind) : 0;
	if (fields) {
		get_addr(c, last, fields, &cur, out);
		predict(last, fields, out);
		get_fields(last, carried(fields, m), &cur, out);
	}
	if (cur.bad)
		return -GMT_ERR_BAD_RECORD;
	if (fields)
		remember(c, last, fields, out);
	c->seq = out->seq;
	c->time_ns = out->time_ns;
	c->thread = out->thread;
	return 1 + in[0];
}

size_t gmt_encoded_def_size(const struct gmt_def *d)
{
	return varint_size(d->kind) + varint_size(d->id) + varint_size(d->len) + d->len;
}

size_t gmt_encode_def(const struct gmt_def *d, uint8_t *out)
{
	uint8_t *p = put_varint(out, d->kind);

	p = put_varint(p, d->id);
	p = put_varint(p, d->len);
	if (d->len)
		memcpy(p, d->payload, d->len);
	return (size_t)(p - out) + d->len;
}

long gmt_decode_def(const uint8_t *in, size_t len, struct gmt_def *out)
{
	struct cursor cur = { in, in + len, false };

	out->kind = get_varint32(&cur);
	out->id = get_varint32(&cur);
	out->len = get_varint32(&cur);
	out->payload = cur.p;
	if (cur.bad || out->len > (size_t)(cur.end - cur.p))
		return -GMT_ERR_BAD_RECORD;
	return (long)(cur.p - in) + out->len;
}
