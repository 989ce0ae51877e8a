/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The largest value that fits each card. The next value to try lies between the largest known to
 * fit and the smallest known not to. It is where a straight line through the needs of the last two
 * runs meets the card's memory. After a few tries that did not close the gap it is the middle. The
 * search ends when the two are one apart and both were run on that very card. If a value makes the
 * program fail for another reason (a length that does not divide), only multiples of the common
 * divisor of the given values are tried from then on. Cards are searched in parallel.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/need.h"
#include "search.h"

#define BY_LINE 4 /* tries before the middle is used */

struct range {
	struct search *search;
	const struct vary *vary;
	size_t at; /* index of the name */
};

static struct setting with_value(const struct range *r, const struct largest *l, uint64_t value)
{
	struct setting s = l->setting;
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	s.values[r->at] = need_copy(text, strlen(text));
	return s;
}

static bool same_others(const struct range *r, const struct setting *a, const struct setting *b)
{
	return vary_same_but(&r->search->plan.varied, a, b, r->at);
}

static uint64_t value_of(const struct range *r, const struct setting *s)
{
	return strtoull(s->values[r->at], NULL, 10);
}

/* Narrows the range by the cells whose value fits, or by those whose value does not. */
static void look_at_cells(const struct range *r, struct largest *l, bool fits)
{
	for (size_t i = 0; i < r->search->cell_count; i++) {
		struct cell *c = &r->search->cells[i];
		uint64_t value = value_of(r, &c->setting);

		if (c->card != l->card || !same_others(r, &c->setting, &l->setting) ||
		    c->fits != fits || (l->high && value >= l->high))
			continue;
		if (!fits) {
			l->high = value;
			l->high_trial = c->trial;
		} else if (value > l->low) {
			l->low = value;
			l->low_trial = c->trial;
		}
	}
}

/* Failures first: a value above one that does not fit is ignored. */
static void largest_set_range(const struct range *r, struct largest *l)
{
	look_at_cells(r, l, false);
	look_at_cells(r, l, true);
}

/* Needs of two values that fit, on a card of the same generation. */
static bool two_points(const struct range *r, const struct largest *l, double x[2], double y[2])
{
	struct search *s = r->search;
	size_t n = 0;

	for (size_t i = s->trial_count; i-- > 0 && n < 2;) {
		struct trial *t = s->trials[i];
		double value;

		if (t->verdict != ENDING_FITS || !search_same_generation(t->card, l->card) ||
		    !same_others(r, &t->setting, &l->setting))
			continue;
		value = (double)value_of(r, &t->setting);
		if (n && x[0] == value)
			continue;
		x[n] = value;
		y[n++] = (double)t->device - (double)t->context + (double)l->card->context;
	}
	return n == 2;
}

static uint64_t next_value(const struct range *r, struct largest *l)
{
	uint64_t step = l->step, low = l->low / step, high = l->high / step;
	double x[2], y[2], each, at;
	uint64_t middle = low + (high - low) / 2;

	if (l->probes++ >= BY_LINE || !two_points(r, l, x, y))
		return middle * step;
	each = (y[1] - y[0]) / (x[1] - x[0]);
	if (!(each > 0))
		return middle * step;
	at = (x[0] + ((double)l->card->memory - y[0]) / each) / (double)step;
	middle = at < (double)(low + 1)	   ? low + 1
		 : at > (double)(high - 1) ? high - 1
					   : (uint64_t)at;
	return middle * step;
}

/* The next run for it, or NULL. */
static struct trial *next_trial(const struct range *r, struct largest *l)
{
	uint64_t value;
	struct setting s;

	if (l->high && l->high - l->low > l->step)
		value = next_value(r, l);
	else if (l->low && l->low_trial->card != l->card)
		value = l->low;
	else if (l->high && l->high_trial->card != l->card)
		value = l->high;
	else
		return NULL;
	s = with_value(r, l, value);
	return search_trial(r->search, l->card, &s);
}

static void take_in(const struct range *r, struct largest *l, struct trial *t)
{
	uint64_t value = value_of(r, &t->setting);

	if (t->verdict == ENDING_FAILED && value % r->vary->step) {
		l->step = r->vary->step;
		l->low = l->high = l->probes = 0;
		largest_set_range(r, l);
	} else if (t->verdict == ENDING_FITS) {
		l->low = value;
		l->low_trial = t;
		if (l->high && l->high <= value)
			l->high = 0;
	} else {
		l->high = value;
		l->high_trial = t;
		if (l->low >= value)
			l->low = 0;
	}
}

static int one_round(const struct range *r, bool *more)
{
	struct search *s = r->search;
	struct trial **list = need_new((s->largest_count + 1) * sizeof(*list));
	size_t *of = need_new((s->largest_count + 1) * sizeof(*of)), n = 0;
	int rc;

	for (size_t i = 0; i < s->largest_count; i++) {
		struct trial *t = s->largest[i].done ? NULL : next_trial(r, &s->largest[i]);

		s->largest[i].done = !t;
		if (t) {
			of[n] = i;
			list[n++] = t;
		}
	}
	rc = search_run(s, list, n);
	for (size_t i = 0; !rc && i < n; i++)
		take_in(r, &s->largest[of[i]], list[i]);
	*more = n;
	free(list);
	free(of);
	return rc;
}

static void largest_add(const struct range *r, const struct cell *c)
{
	struct search *s = r->search;

	for (size_t i = 0; i < s->largest_count; i++)
		if (s->largest[i].card == c->card &&
		    same_others(r, &s->largest[i].setting, &c->setting))
			return;
	s->largest = need_grow(s->largest, &s->largest_room, s->largest_count, sizeof(*s->largest));
	s->largest[s->largest_count] =
		(struct largest){ .card = c->card, .setting = c->setting, .step = 1 };
	largest_set_range(r, &s->largest[s->largest_count]);
	s->largest_count++;
}

int search_largest(struct search *s)
{
	struct range r = { .search = s };
	bool more = true;
	int rc = 0;

	r.vary = vary_counted(&s->plan.varied, &r.at);
	if (!r.vary)
		return 0;
	for (size_t i = 0; i < s->cell_count; i++)
		largest_add(&r, &s->cells[i]);
	while (!rc && more)
		rc = one_round(&r, &more);
	for (size_t i = 0; i < s->largest_count; i++)
		if (s->largest[i].low)
			s->largest[i].setting = with_value(&r, &s->largest[i], s->largest[i].low);
	return rc;
}
