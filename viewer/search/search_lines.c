/* SPDX-License-Identifier: Apache-2.0 */
/* The straight line through what runs needed, by the method of least squares, and how far off it
 * is: for each card that was run, and each setting of the other names. */
#include <stdlib.h>

#include "../base/need.h"
#include "search.h"

static double magnitude(double x)
{
	return x < 0 ? -x : x;
}

struct point {
	double x, y;
};

static size_t points_of(const struct search *s, const struct fitted *f, size_t at,
			struct point *points)
{
	size_t n = 0;

	for (size_t i = 0; i < s->trial_count; i++) {
		const struct trial *t = s->trials[i];

		if (t->card == f->card && t->verdict == ENDING_FITS &&
		    vary_same_but(&s->plan.varied, &t->setting, &f->setting, at))
			points[n++] = (struct point){ strtod(t->setting.values[at], NULL),
						      (double)t->device };
	}
	return n;
}

static void fit_line(struct fitted *f, const struct point *p, size_t n)
{
	double x = 0, y = 0, xx = 0, xy = 0;

	for (size_t i = 0; i < n; i++) {
		x += p[i].x / (double)n;
		y += p[i].y / (double)n;
	}
	for (size_t i = 0; i < n; i++) {
		xx += (p[i].x - x) * (p[i].x - x);
		xy += (p[i].x - x) * (p[i].y - y);
	}
	f->points = n;
	f->each = xx > 0 ? xy / xx : 0;
	f->base = y - f->each * x;
	for (size_t i = 0; i < n; i++) {
		double off = magnitude(f->base + f->each * p[i].x - p[i].y) / p[i].y;

		f->error = off > f->error ? off : f->error;
	}
}

static bool is_there(const struct search *s, const struct fitted *f, size_t at)
{
	for (size_t i = 0; i < s->line_count; i++)
		if (s->lines[i].card == f->card &&
		    vary_same_but(&s->plan.varied, &f->setting, &s->lines[i].setting, at))
			return true;
	return false;
}

void search_lines(struct search *s)
{
	struct point *points = need_new((s->trial_count + 1) * sizeof(*points));
	size_t at;

	for (size_t i = 0; vary_counted(&s->plan.varied, &at) && i < s->trial_count; i++) {
		struct fitted f = { .card = s->trials[i]->card, .setting = s->trials[i]->setting };
		size_t n;

		if (is_there(s, &f, at))
			continue;
		n = points_of(s, &f, at, points);
		if (n < 2)
			continue;
		fit_line(&f, points, n);
		*need_item(s->lines, s->line_count, s->line_room) = f;
	}
	free(points);
}
