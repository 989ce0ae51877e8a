/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The encoder takes the latest event that was like the current one and had the same two before it,
 * and compares what follows. Encoder and decoder keep the same past, so a reference never leaves
 * its group, and every event that it can name was decoded before.
 */
#include "codec_copies.h"

#include "record.h"
#include "varint.h"

_Static_assert(sizeof(struct gmt_event) == 80, "all members are compared");

static struct gmt_event *event_at(struct gmt_past *p, uint32_t place)
{
	return &p->items[place % GMT_COPIES_PAST].event;
}

static void keep_event(struct gmt_past *p, unsigned fields, const struct gmt_event *e)
{
	p->items[p->count % GMT_COPIES_PAST].event = *e;
	p->items[p->count % GMT_COPIES_PAST].fields = fields;
	p->count++;
}

static bool numbers_range(unsigned kind)
{
	return kind == GMT_RANGE_BEGIN || kind == GMT_RANGE_END;
}

/* Whether arg0 of a copy can differ from that of the event it is a copy of. */
static bool has_own_arg0(unsigned kind)
{
	return (kind >= GMT_TAG_LEAF && kind <= GMT_TAG_MOVED) || numbers_range(kind);
}

/* ---- encoding ---- */

static bool is_alike(const struct gmt_event *a, const struct gmt_event *b)
{
	return a->kind == b->kind && a->addr == b->addr && a->size == b->size &&
	       (a->arg0 == b->arg0 || has_own_arg0(a->kind)) && a->arg1 == b->arg1 &&
	       a->stream == b->stream && a->stack == b->stack && a->thread == b->thread &&
	       a->name == b->name && !a->scope == !b->scope && a->flags == b->flags &&
	       a->device == b->device;
}

static uint64_t mix(uint64_t h, uint64_t value)
{
	h = (h ^ value) * 0x9e3779b97f4a7c15ULL;
	return h ^ h >> 29;
}

static uint64_t hash_of(const struct gmt_event *e)
{
	uint64_t h = mix(e->addr, e->size + ((uint64_t)e->kind << 48));

	return mix(h, e->stack + ((uint64_t)e->name << 32));
}

void gmt_copies_begin(struct gmt_copies *s)
{
	s->past.count = s->past.copy.run = 0;
	s->past.copy.distance = 0;
	s->before[0] = s->before[1] = 0;
}

/* Whether e goes on with the stretch. The first scope and the first range say what is added. */
static bool goes_on(struct gmt_copies *s, const struct gmt_event *e)
{
	struct gmt_past *p = &s->past;
	const struct gmt_event *from = event_at(p, p->count - p->copy.distance);
	uint32_t more_scope = e->scope - from->scope;
	uint64_t more_range = e->arg0 - from->arg0;

	if (!is_alike(e, from) || from->seq >= e->seq ||
	    e->seq != event_at(p, p->count - 1)->seq + 1 ||
	    (p->copy.run && from->seq != event_at(p, p->count - p->copy.distance - 1)->seq + 1))
		return false;
	if (e->scope && s->scopes && more_scope != p->copy.more_scope)
		return false;
	if (numbers_range(e->kind) && s->ranges && more_range != p->copy.more_range)
		return false;
	if (e->scope) {
		p->copy.more_scope = more_scope;
		s->scopes = true;
	}
	if (numbers_range(e->kind)) {
		p->copy.more_range = more_range;
		s->ranges = true;
	}
	return true;
}

static void put_copy(const struct gmt_copies *s, uint8_t *at[GMT_COLUMNS])
{
	const struct gmt_copy *copy = &s->past.copy;
	uint8_t *p = at[GMT_COL_KIND];

	*p++ = 0;
	p = put_varint(p, copy->distance);
	p = put_varint(p, copy->run);
	p = put_varint(p, zigzag((uint64_t)(int64_t)(int32_t)copy->more_scope));
	at[GMT_COL_KIND] = put_varint(p, zigzag(copy->more_range));
}

void gmt_copies_end(struct gmt_copies *s, struct gmt_codec *c, uint8_t *at[GMT_COLUMNS])
{
	struct gmt_past *p = &s->past;

	if (p->copy.run >= GMT_COPIES_KEPT)
		put_copy(s, at);
	else
		for (uint32_t i = p->count - p->copy.run; i != p->count; i++)
			gmt_encode_columns(c, event_at(p, i), at);
	p->copy.run = 0;
}

/* Begins to compare with what followed the latest event that was like this one, if any. */
static void look_back(struct gmt_copies *s, const struct gmt_event *e, uint64_t hash)
{
	struct gmt_past *p = &s->past;
	uint32_t *at = &s->at[mix(hash ^ s->before[0] * 3, s->before[1]) % GMT_COPIES_CONTEXTS];
	uint32_t distance = p->count - 1 - *at;

	if (!p->copy.distance && *at < p->count - 1 && distance < GMT_COPIES_PAST &&
	    is_alike(e, event_at(p, *at))) {
		p->copy = (struct gmt_copy){ .distance = distance };
		s->scopes = s->ranges = false;
	}
	*at = p->count - 1;
	s->before[1] = s->before[0];
	s->before[0] = hash;
}

void gmt_copies_add(struct gmt_copies *s, struct gmt_codec *c, const struct gmt_event *e,
		    uint8_t *at[GMT_COLUMNS])
{
	struct gmt_past *p = &s->past;
	uint32_t ready = 0; /* events that are now known to be copies */

	if (p->copy.distance && goes_on(s, e)) {
		keep_event(p, p->items[(p->count - p->copy.distance) % GMT_COPIES_PAST].fields, e);
		p->copy.run++;
		if (p->copy.run >= GMT_COPIES_KEPT)
			ready = p->copy.run == GMT_COPIES_KEPT ? p->copy.run : 1;
		for (uint32_t i = ready; i > 0; i--)
			gmt_encode_copy(c, p->items[(p->count - i) % GMT_COPIES_PAST].fields,
					event_at(p, p->count - i), at);
	} else {
		gmt_copies_end(s, c, at);
		p->copy.distance = 0;
		gmt_encode_columns(c, e, at);
		keep_event(p, c->fields, e);
	}
	look_back(s, e, hash_of(e));
}

/* ---- decoding ---- */

static bool get_copy(struct gmt_past *p, struct cursor *kind)
{
	uint64_t distance, events, scope, range;

	get_byte(kind);
	distance = get_varint(kind);
	events = get_varint(kind);
	scope = unzigzag(get_varint(kind));
	range = unzigzag(get_varint(kind));
	if (kind->bad || !distance || distance > p->count || distance >= GMT_COPIES_PAST ||
	    !events || events > UINT32_MAX)
		return false;
	p->copy = (struct gmt_copy){ .distance = (uint32_t)distance,
				     .left = (uint32_t)events,
				     .more_scope = (uint32_t)scope,
				     .more_range = range };
	return true;
}

static int next_copy(struct gmt_past *p, struct gmt_codec *c, struct cursor *in,
		     struct gmt_event *out)
{
	uint32_t from = p->count - p->copy.distance;
	unsigned fields = p->items[from % GMT_COPIES_PAST].fields;
	int rc;

	*out = *event_at(p, from);
	if (!p->copy.run)
		p->copy.of_seq = out->seq;
	if (out->seq != p->copy.of_seq + p->copy.run || out->seq >= c->seq + 1)
		return -GMT_ERR_BAD_RECORD;
	out->seq = c->seq + 1;
	if (out->scope)
		out->scope += p->copy.more_scope;
	if (numbers_range(out->kind))
		out->arg0 += p->copy.more_range;
	rc = gmt_decode_copy(c, fields, in, out);
	if (rc)
		return rc;
	p->copy.left--;
	p->copy.run++;
	keep_event(p, fields, out);
	return 0;
}

int gmt_decode_copies(struct gmt_past *p, struct gmt_codec *c, struct cursor *in,
		      struct gmt_event *out)
{
	struct cursor *kind = &in[GMT_COL_KIND];
	int rc;

	if (!p->copy.left && kind->p < kind->end && *kind->p == 0 && !get_copy(p, kind))
		return -GMT_ERR_BAD_RECORD;
	if (p->copy.left)
		return next_copy(p, c, in, out);
	p->copy.run = 0;
	rc = gmt_decode_columns(c, in, out);
	if (rc == 0)
		keep_event(p, c->fields, out);
	return rc;
}
