/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes and decodes an event: kind, a mask of the fields that differ from their prediction, time,
 * then only those fields. A record has them in sequence after its length; columns have each kind of
 * field apart, and number the objects of tags. Encoder and decoder share predict_arg0() and
 * remember(), so their predictions agree. Pure: no allocation, no state but the caller's.
 */
#include <string.h>

#include "codec.h"

#include "record.h"
#include "codec_objects.h"
#include "varint.h"

/* Bits of the mask. A set bit: the field is written. A clear bit: the field is as predicted. */
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

#define INLINE inline __attribute__((always_inline))

#define LAST_PLACE_KIND 39 /* later kinds look addresses up, but do not add them */

/* Whether records of the kind list their fields: readers that do not know it can then skip it. */
static bool says_its_fields(unsigned kind)
{
	return kind >= GMT_KIND_EXTRA;
}

/* The last values of the kind's group, from which its fields are predicted. */
static struct gmt_event *group_of(struct gmt_codec *c, unsigned kind)
{
	_Static_assert(GMT_CODEC_GROUPS == GMT_KIND_EXTRA, "kinds below have a group of their own");
	if (says_its_fields(kind))
		return &c->later[kind % GMT_CODEC_LATER];
	if (kind == GMT_BLOCK_FREE || kind == GMT_BLOCK_OOM)
		kind = GMT_BLOCK_ALLOC;
	return &c->last[kind];
}

/* The fields to write for an event whose kind is not in the tables: those that are set. */
static unsigned fields_there(const struct gmt_event *e)
{
	return (e->addr ? F_ADDR : 0) | (e->size ? F_SIZE : 0) | (e->arg0 ? F_ARG0 : 0) |
	       (e->arg1 ? F_ARG1 : 0) | (e->stream ? F_STREAM : 0) | (e->name ? F_NAME : 0) |
	       (e->scope ? F_SCOPE : 0) | (e->device != -1 ? F_DEVICE : 0) |
	       (e->stack ? F_STACK : 0);
}

static unsigned fields_of(const struct gmt_event *e)
{
	return !says_its_fields(e->kind) || gmt_kind_is_known(e->kind) ? gmt_kind_fields(e->kind)
								       : fields_there(e);
}

static unsigned place_of(uint64_t addr)
{
	return (unsigned)(addr * 0x9e3779b97f4a7c15ULL >> 52);
}

/* For blocks, arg0 is the total of allocated bytes, which changes by the event's size. */
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
	c->seq = e->seq;
	c->time_ns = e->time_ns;
	c->thread = e->thread;
	c->fields = fields;
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

void gmt_encode_expect(const struct gmt_codec *c, const struct gmt_event *e)
{
	__builtin_prefetch(&c->place[place_of(e->addr)], 1);
	if (names_object(e->kind))
		__builtin_prefetch(&c->number[number_place(e->arg0)], 1);
}

/* ---- encoding: each field at the place of its column ---- */

typedef uint8_t *places[GMT_COLUMNS];

/* Output position per column. A record has one position for all columns, and its arg0 and time are
 * encoded as in versions without columns. */
struct out {
	uint8_t **at;
	bool columns;
};

static INLINE uint8_t **place_in(const struct out *o, enum gmt_column column)
{
	return &o->at[o->columns ? column : 0];
}

static INLINE void put(const struct out *o, enum gmt_column column, uint64_t value)
{
	uint8_t **at = place_in(o, column);

	*at = put_varint(*at, value);
}

/* Token: 0 = address and size follow; 1 + 2 x place = both are as remembered; 2 + 2 x place = the
 * address is, the size follows. */
static INLINE void put_addr(struct gmt_codec *c, const struct gmt_event *last, unsigned fields,
			    const struct gmt_event *e, struct out *o)
{
	unsigned place = place_of(e->addr);
	bool known = (fields & F_ADDR) && e->addr && c->place[place].addr == e->addr;
	bool same = known && (!(fields & F_SIZE) || c->place[place].size == e->size);
	uint8_t **addr = place_in(o, GMT_COL_ADDR), **size = place_in(o, GMT_COL_SIZE);

	if (fields & F_ADDR)
		*addr = put_varint(*addr, known ? 1 + 2 * place + !same : 0);
	if ((fields & F_ADDR) && !known)
		*addr = put_packed(*addr, zigzag(e->addr - last->addr));
	if ((fields & F_SIZE) && !same)
		*size = put_packed(*size, e->size);
}

/* Token: 0 = a new object, whose address follows; else 1 + zigzag(number - expected number). */
static INLINE void put_object(struct gmt_codec *c, const struct gmt_event *e, struct out *o)
{
	uint8_t **new = place_in(o, GMT_COL_NEW);
	uint32_t number = *number_of(c, e->arg0);
	bool known = is_kept(c, number) && c->object[number % GMT_CODEC_OBJECTS] == e->arg0;
	int32_t off = (int32_t)(number - expected_number(c, e->kind));

	put(o, GMT_COL_OBJECT, known ? 1 + zigzag((uint64_t)(int64_t)off) : 0);
	if (known) {
		note_number(c, e->kind, number);
	} else {
		*new = put_object_step(*new, e->arg0 - c->last_object);
		c->last_object = e->arg0;
	}
	enter_object(c, e->kind, e->arg0, known);
}

static INLINE void put_arg0(struct gmt_codec *c, const struct gmt_event *last,
			    const struct gmt_event *e, struct out *o)
{
	if (o->columns && names_object(e->kind))
		put_object(c, e, o);
	else
		put(o, GMT_COL_ARG0, zigzag(e->arg0 - last->arg0));
}

static INLINE void put_fields(struct gmt_codec *c, const struct gmt_event *last, unsigned fields,
			      unsigned m, const struct gmt_event *e, struct out *o)
{
	put_addr(c, last, fields, e, o);
	if (m & M_ARG0)
		put_arg0(c, last, e, o);
	if (m & M_ARG1)
		put(o, GMT_COL_ARG1, zigzag(e->arg1 - last->arg1));
	if (m & M_STREAM)
		put(o, GMT_COL_OTHER, e->stream);
	if (m & M_NAME)
		put(o, GMT_COL_OTHER, e->name);
	if (m & M_SCOPE)
		put(o, GMT_COL_OTHER, zigzag((uint64_t)e->scope - last->scope));
	if (m & M_DEVICE)
		put(o, GMT_COL_OTHER, zigzag((uint64_t)(int64_t)e->device));
	if (m & M_STACK)
		put(o, GMT_COL_STACK, e->stack);
}

static INLINE void put_time(struct gmt_codec *c, const struct gmt_event *e, struct out *o)
{
	uint64_t delta = zigzag(e->time_ns - c->time_ns);

	if (o->columns) {
		*(*place_in(o, GMT_COL_TIME))++ = (uint8_t)delta;
		delta >>= 8;
	}
	put(o, GMT_COL_LATER, delta);
}

static INLINE void encode(struct gmt_codec *c, const struct gmt_event *e, struct out *o)
{
	struct gmt_event *last = group_of(c, e->kind);
	unsigned fields = fields_of(e);
	unsigned m = mask_of(last, fields, e);

	m |= e->seq != c->seq + 1 ? M_SEQ : 0;
	m |= e->thread != c->thread ? M_THREAD : 0;
	m |= e->flags ? M_FLAGS : 0;
	put(o, GMT_COL_KIND, e->kind);
	put(o, GMT_COL_KIND, m);
	if (says_its_fields(e->kind))
		put(o, GMT_COL_KIND, fields);
	put_time(c, e, o);
	if (m & M_SEQ)
		put(o, GMT_COL_OTHER, zigzag(e->seq - c->seq));
	if (m & M_THREAD)
		put(o, GMT_COL_OTHER, e->thread);
	if (m & M_FLAGS)
		put(o, GMT_COL_OTHER, e->flags);
	put_fields(c, last, fields, m, e, o);
	remember(c, last, fields, e);
}

size_t gmt_encode_event(struct gmt_codec *c, const struct gmt_event *e, uint8_t *out)
{
	uint8_t *p = out + 1;

	encode(c, e, &(struct out){ &p, false });
	out[0] = (uint8_t)(p - out - 1);
	return (size_t)(p - out);
}

void gmt_encode_columns(struct gmt_codec *c, const struct gmt_event *e, places at)
{
	encode(c, e, &(struct out){ at, true });
}

static bool has_object(const struct gmt_event *e, unsigned fields)
{
	return (fields & F_ARG0) && names_object(e->kind);
}

void gmt_encode_copy(struct gmt_codec *c, unsigned fields, const struct gmt_event *e, places at)
{
	struct out o = { at, true };

	put_time(c, e, &o);
	if (has_object(e, fields))
		put_object(c, e, &o);
	remember(c, group_of(c, e->kind), fields, e);
}

/* ---- decoding ---- */

/* A record has one cursor for all columns. */
struct in {
	struct cursor *from;
	bool columns, bad;
};

static INLINE struct cursor *column_of(const struct in *in, enum gmt_column column)
{
	return &in->from[in->columns ? column : 0];
}

#define GET(i, column)	 get_varint(column_of(i, column))
#define GET32(i, column) get_varint32(column_of(i, column))

static INLINE void get_addr(struct gmt_codec *c, const struct gmt_event *last, unsigned fields,
			    struct in *in, struct gmt_event *e)
{
	uint64_t token = fields & F_ADDR ? GET(in, GMT_COL_ADDR) : 0;
	uint64_t place = token ? (token - 1) / 2 : 0;
	bool same = token & 1;

	if (place >= GMT_CODEC_PLACES) {
		in->bad = true;
		return;
	}
	if (token)
		e->addr = c->place[place].addr;
	else if (fields & F_ADDR)
		e->addr = last->addr + unzigzag(get_packed(column_of(in, GMT_COL_ADDR)));
	if (fields & F_SIZE)
		e->size = same ? c->place[place].size : get_packed(column_of(in, GMT_COL_SIZE));
}

/* Sets all members as predicted; get_fields then overwrites those in the mask. */
static INLINE void predict(const struct gmt_event *last, unsigned fields, struct gmt_event *e)
{
	e->stack = fields & F_STACK ? last->stack : 0;
	e->scope = fields & F_SCOPE ? last->scope : 0;
	e->name = fields & F_NAME ? last->name : 0;
	e->arg0 = fields & F_ARG0 ? predict_arg0(last, e->kind, e->size) : 0;
	e->arg1 = fields & F_ARG1 ? last->arg1 : 0;
	e->stream = fields & F_STREAM ? last->stream : 0;
	e->device = fields & F_DEVICE ? last->device : -1;
}

/* The mask without fields that the kind does not carry, which are not written. */
static INLINE unsigned carried(unsigned fields, unsigned m)
{
#define WITHOUT(field) (fields & F_##field ? 0u : (unsigned)M_##field)
	return m & ~(WITHOUT(STACK) | WITHOUT(SCOPE) | WITHOUT(NAME) | WITHOUT(ARG0) |
		     WITHOUT(ARG1) | WITHOUT(STREAM) | WITHOUT(DEVICE));
#undef WITHOUT
}

static INLINE uint64_t get_object(struct gmt_codec *c, unsigned kind, struct in *in)
{
	uint64_t token = GET(in, GMT_COL_OBJECT), object;
	uint32_t number = expected_number(c, kind) + (uint32_t)unzigzag(token - 1);

	if (token && !is_kept(c, number)) {
		in->bad = true;
		return 0;
	}
	if (token) {
		object = c->object[number % GMT_CODEC_OBJECTS];
		note_number(c, kind, number);
	} else {
		object = c->last_object + get_object_step(column_of(in, GMT_COL_NEW));
		c->last_object = object;
	}
	enter_object(c, kind, object, token != 0);
	return object;
}

static INLINE void get_fields(struct gmt_codec *c, const struct gmt_event *last, unsigned m,
			      struct in *in, struct gmt_event *e)
{
	if ((m & M_ARG0) && in->columns && names_object(e->kind))
		e->arg0 = get_object(c, e->kind, in);
	else if (m & M_ARG0)
		e->arg0 = last->arg0 + unzigzag(GET(in, GMT_COL_ARG0));
	if (m & M_ARG1)
		e->arg1 = last->arg1 + unzigzag(GET(in, GMT_COL_ARG1));
	if (m & M_STREAM)
		e->stream = GET(in, GMT_COL_OTHER);
	if (m & M_NAME)
		e->name = GET32(in, GMT_COL_OTHER);
	if (m & M_SCOPE)
		e->scope = (uint32_t)(last->scope + unzigzag(GET(in, GMT_COL_OTHER)));
	if (m & M_DEVICE)
		e->device = (int32_t)unzigzag(GET(in, GMT_COL_OTHER));
	if (m & M_STACK)
		e->stack = GET32(in, GMT_COL_STACK);
}

static INLINE uint64_t get_time(struct in *in)
{
	uint64_t low = in->columns ? get_byte(column_of(in, GMT_COL_TIME)) : 0;
	uint64_t delta = GET(in, GMT_COL_LATER);

	if (in->columns && delta >> 56)
		in->bad = true;
	return unzigzag(in->columns ? delta << 8 | low : delta);
}

/* Reads kind and mask, and returns the event's fields. Fields of later versions are ignored: they
 * have bits and columns of their own, after the known ones. */
static INLINE unsigned get_kind(struct in *in, struct gmt_event *e, unsigned *m)
{
	uint64_t kind = GET(in, GMT_COL_KIND);

	if (kind == 0 || kind > UINT16_MAX)
		in->bad = true;
	*e = (struct gmt_event){ .device = -1, .kind = (uint16_t)kind };
	*m = (unsigned)GET(in, GMT_COL_KIND);
	return says_its_fields(e->kind) ? (unsigned)GET(in, GMT_COL_KIND) & F_ALL
					: gmt_kind_fields(e->kind);
}

static INLINE void get_common(struct gmt_codec *c, struct in *in, unsigned m, struct gmt_event *e)
{
	e->time_ns = c->time_ns + get_time(in);
	e->seq = m & M_SEQ ? c->seq + unzigzag(GET(in, GMT_COL_OTHER)) : c->seq + 1;
	e->thread = m & M_THREAD ? GET32(in, GMT_COL_OTHER) : c->thread;
	if (m & M_FLAGS) {
		uint32_t flags = GET32(in, GMT_COL_OTHER);

		if (flags > UINT16_MAX)
			in->bad = true;
		e->flags = (uint16_t)flags;
	}
}

static bool can_be_read(const struct gmt_event *e, unsigned fields)
{
	bool has_row = !says_its_fields(e->kind) && fields; /* the usual case, without a call */

	return has_row || gmt_kind_is_extra(e->kind) || gmt_kind_is_known(e->kind);
}

static INLINE bool is_bad(const struct in *in)
{
	const struct cursor *c = in->from;

	_Static_assert(GMT_COLUMNS == 11, "each is asked");
	if (!in->columns)
		return in->bad | c->bad;
	return in->bad | c[0].bad | c[1].bad | c[2].bad | c[3].bad | c[4].bad | c[5].bad |
	       c[6].bad | c[7].bad | c[8].bad | c[9].bad | c[10].bad;
}

static INLINE int decode(struct gmt_codec *c, struct in *in, struct gmt_event *out)
{
	unsigned m, fields = get_kind(in, out, &m);
	struct gmt_event *last = group_of(c, out->kind);

	get_common(c, in, m, out);
	if (!can_be_read(out, fields) && !is_bad(in))
		return -GMT_ERR_UNKNOWN_KIND;
	get_addr(c, last, fields, in, out);
	predict(last, fields, out);
	get_fields(c, last, carried(fields, m), in, out);
	if (is_bad(in))
		return -GMT_ERR_BAD_RECORD;
	remember(c, last, fields, out);
	return 0;
}

long gmt_decode_event(struct gmt_codec *c, const uint8_t *in, size_t len, struct gmt_event *out)
{
	struct cursor record = { in + 1, in + 1, false };
	int rc;

	if (len < 1 || in[0] >= GMT_EVENT_MAX || (size_t)in[0] + 1 > len)
		return -GMT_ERR_BAD_RECORD;
	record.end = in + 1 + in[0];
	rc = decode(c, &(struct in){ &record, .columns = false }, out);
	return rc < 0 ? rc : 1 + in[0];
}

int gmt_decode_columns(struct gmt_codec *c, struct cursor *in, struct gmt_event *out)
{
	return decode(c, &(struct in){ in, .columns = true }, out);
}

int gmt_decode_copy(struct gmt_codec *c, unsigned fields, struct cursor *from, struct gmt_event *e)
{
	struct in in = { from, .columns = true };

	e->time_ns = c->time_ns + get_time(&in);
	if (has_object(e, fields))
		e->arg0 = get_object(c, e->kind, &in);
	if (is_bad(&in))
		return -GMT_ERR_BAD_RECORD;
	remember(c, group_of(c, e->kind), fields, e);
	return 0;
}
