/* SPDX-License-Identifier: Apache-2.0 */
#include "page_curve.h"

#include "../base/arithmetic.h"
#include "../base/emit.h"
#include "page_column.h"

void page_curve_free(struct page_curve *c)
{
	free(c->groups);
}

static void join(struct group *a, const struct group *b)
{
	if (b->high.bytes > a->high.bytes)
		a->high = b->high;
	if (b->low.bytes < a->low.bytes)
		a->low = b->low;
	a->last = b->last;
	for (unsigned i = 0; i < POINT_FIGURES; i++)
		a->most[i] = arithmetic_most(a->most[i], b->most[i]);
}

/* Joins each pair of groups. */
static void halve(struct page_curve *c)
{
	size_t to = 0;

	for (size_t i = 0; i + 1 < c->count; i += 2) {
		struct group both = c->groups[i];

		join(&both, &c->groups[i + 1]);
		c->groups[to++] = both;
	}
	if (c->count % 2) {
		c->groups[to++] = c->groups[c->count - 1];
		c->filled = c->size;
	} else {
		c->filled = 2 * c->size;
	}
	c->count = to;
	c->size *= 2;
}

void page_curve_add(struct page_curve *c)
{
	struct group one = { .high = c->now, .low = c->now, .last = c->now };

	memcpy(one.most, c->now.figures, sizeof(one.most));
	c->changes++;
	if (c->count && c->filled < c->size) {
		join(&c->groups[c->count - 1], &one);
		c->filled++;
		return;
	}
	*need_item(c->groups, c->count, c->room) = one;
	c->filled = 1;
	if (c->count == c->limit)
		halve(c);
}

struct page_curve page_curve_coarse(const struct page_curve *c, size_t groups)
{
	struct page_curve coarse = *c;

	coarse.room = c->count;
	coarse.groups = need_new(c->count * sizeof(*c->groups));
	memcpy(coarse.groups, c->groups, c->count * sizeof(*c->groups));
	while (coarse.count > groups)
		halve(&coarse);
	return coarse;
}

struct columns {
	struct bytes seq, time, reserved, used, classes, groups, most;
	struct point before;
};

/* Writes numbers that are mostly zero: a bit mask of the others, then those. */
static void put_sparse(struct bytes *c, const uint64_t *values, unsigned count, bool with_sign)
{
	uint64_t bits = 0;

	for (unsigned i = 0; i < count; i++)
		bits |= (uint64_t)(values[i] != 0) << i;
	bytes_varint(c, bits);
	for (unsigned i = 0; i < count; i++)
		if (values[i])
			bytes_varint(c, with_sign ? zigzag(values[i]) : values[i]);
}

static void put_point(struct columns *o, const struct point *p)
{
	const struct point *b = &o->before;
	uint64_t more[POINT_FIGURES];

	for (unsigned i = 0; i < POINT_FIGURES; i++)
		more[i] = p->figures[i] - b->figures[i];
	bytes_varint(&o->seq, p->seq - b->seq);
	bytes_varint(&o->time, zigzag(p->time_ns - b->time_ns));
	bytes_varint(&o->reserved, zigzag(more[POINT_RESERVED]));
	bytes_varint(&o->used, zigzag(more[POINT_USED]));
	put_sparse(&o->classes, more, CATEGORIES, true);
	o->before = *p;
}

/* Writes the points of a group in order of seq, each once. Returns their number. */
static unsigned put_group(struct columns *o, const struct group *g)
{
	const struct point *first = &g->high, *second = &g->low;
	unsigned n = 0;

	if (g->low.seq < g->high.seq) {
		first = &g->low;
		second = &g->high;
	}
	if (first->seq != g->last.seq) {
		put_point(o, first);
		n++;
	}
	if (second->seq != first->seq && second->seq != g->last.seq) {
		put_point(o, second);
		n++;
	}
	put_point(o, &g->last);
	return n + 1;
}

/* Writes by how much each figure's maximum within the group exceeds its values at the points. */
static void put_most(struct columns *o, const struct group *g)
{
	uint64_t more[POINT_FIGURES];

	for (unsigned i = 0; i < POINT_FIGURES; i++)
		more[i] = g->most[i] -
			  arithmetic_most(g->high.figures[i],
					  arithmetic_most(g->low.figures[i], g->last.figures[i]));
	put_sparse(&o->most, more, POINT_FIGURES, false);
}

void page_curve_emit(const struct page_curve *c, uint64_t first_ns, struct emit *out)
{
	struct columns o = { .before = { .time_ns = first_ns } };

	for (size_t i = 0; i < c->count; i++) {
		bytes_varint(&o.groups, put_group(&o, &c->groups[i]));
		put_most(&o, &c->groups[i]);
	}
	emit_object(out, "curve");
	emit_number(out, "changes", c->changes);
	emit_number(out, "group", c->size);
	column_emit(&o.groups, out, "groups");
	column_emit(&o.seq, out, "seq");
	column_emit(&o.time, out, "time");
	column_emit(&o.reserved, out, "reserved");
	column_emit(&o.used, out, "used");
	column_emit(&o.classes, out, "classes");
	column_emit(&o.most, out, "most");
	emit_end(out);
}

void page_curve_point(const struct point *p, struct emit *out, const char *key)
{
	struct bytes c = { 0 };

	column_row(&c, p->figures[POINT_RESERVED], p->figures[POINT_USED]);
	put_sparse(&c, p->figures, CATEGORIES, false);
	column_emit(&c, out, key);
}
