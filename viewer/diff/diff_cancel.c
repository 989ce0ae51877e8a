/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes that cancel out: bytes of one line are held by another line now, or in other pieces. They
 * become one finding, which says so and comes last. Findings with a cause of their own are not
 * touched.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../base/need.h"
#include "diff_causes.h"

#define PARTNERS 2 /* most findings that cancel one */

/* ---- pairs: gone in one place, and new in another one */

#define TELLING 1000 /* of the peak: smaller changes are ignored */

static bool one_sided(const struct diff *d, const struct diff_pair *p)
{
	return diff_differs(p) && (!p->old_site || !p->new_site) &&
	       diff_size(p) > d->new.shot.total / TELLING;
}

/* Whether these are the same blocks at another place. */
static bool may_be_moved(const struct diff *d, const struct diff_pair *gone,
			 const struct diff_pair *new)
{
	if (new->old_site || !one_sided(d, new) || gone->category != new->category ||
	    gone->blocks_old != new->blocks_new)
		return false;
	for (uint64_t i = 0; i < gone->blocks_old; i++)
		if (!diff_like_size(gone->old_sizes[i], new->new_sizes[i]))
			return false;
	return true;
}

struct move {
	size_t gone, new;
	double score;
};

static int by_score(const void *a, const void *b)
{
	const struct move *x = a, *y = b;

	if (x->score != y->score)
		return x->score < y->score ? 1 : -1;
	return x->gone + x->new < y->gone + y->new ? -1 : x->gone + x->new > y->gone + y->new;
}

static double score_of(const struct diff *d, const struct diff_pair *gone,
		       const struct diff_pair *new)
{
	return 2 * diff_same_place(d, gone, new, false) +
	       !strcmp(gone->old_site->module, new->new_site->module) - fabs(gone->at - new->at);
}

static void take_move(struct diff *d, struct diff_finding **f, struct diff_pair *p)
{
	*f = *f ? *f : diff_new_finding(d, CAUSE_MOVED);
	p->finding = (*f)->id;
	(*f)->bytes_old += p->bytes_old;
	(*f)->bytes_new += p->bytes_new;
	(*f)->blocks_old += p->blocks_old;
	(*f)->blocks_new += p->blocks_new;
}

static struct diff_finding *find_moves(struct diff *d)
{
	struct diff_finding *f = NULL;
	struct move *all = NULL;
	size_t count = 0, room = 0;

	for (size_t i = 0; i < d->pair_count; i++)
		for (size_t j = 0;
		     one_sided(d, &d->pairs[i]) && !d->pairs[i].new_site && j < d->pair_count; j++)
			if (may_be_moved(d, &d->pairs[i], &d->pairs[j]))
				*need_item(all, count, room) =
					(struct move){ i, j,
						       score_of(d, &d->pairs[i], &d->pairs[j]) };
	if (count)
		qsort(all, count, sizeof(*all), by_score);
	for (size_t k = 0; k < count; k++) {
		if (d->pairs[all[k].gone].finding || d->pairs[all[k].new].finding)
			continue;
		take_move(d, &f, &d->pairs[all[k].gone]);
		take_move(d, &f, &d->pairs[all[k].new]);
	}
	free(all);
	return f;
}

/* ---- findings that cancel each other */

static int64_t change(const struct diff_finding *f)
{
	return (int64_t)(f->bytes_new - f->bytes_old);
}

/* Whether they are of the same part of the model and for the same purpose, in other pieces. */
static bool goes_with(const struct diff *d, const struct diff_finding *a,
		      const struct diff_finding *b)
{
	return a->category == b->category && (change(a) > 0) != (change(b) > 0) &&
	       !strcmp(diff_site_of(&d->pairs[a->pair])->module,
		       diff_site_of(&d->pairs[b->pair])->module);
}

static bool may_cancel(const struct diff *d, const struct diff_finding *f)
{
	return (f->cause == CAUSE_LINE || f->cause == CAUSE_FUNCTION) &&
	       (uint64_t)llabs(change(f)) > d->new.shot.total / TELLING;
}

/* Apart from the allocator's rounding. */
static bool cancels(int64_t a, int64_t b)
{
	return llabs(a + b) <= llabs(a) / 50;
}

/* The findings that cancel `first`, as few as possible; 0 = there are none. */
static size_t find_partners(const struct diff *d, size_t first, size_t found[PARTNERS])
{
	const struct diff_finding *f = &d->findings[first];
	int64_t all = change(f);
	size_t n = 0;

	for (size_t i = 0; i < d->count && !n; i++) {
		int64_t a = change(&d->findings[i]);

		found[0] = i;
		if (may_cancel(d, &d->findings[i]) && goes_with(d, f, &d->findings[i]))
			n = cancels(all, a);
	}
	for (size_t i = 0; i < d->count && !n; i++)
		for (size_t j = i + 1; j < d->count && !n; j++) {
			int64_t a = change(&d->findings[i]), b = change(&d->findings[j]);

			found[0] = i;
			found[1] = j;
			if (may_cancel(d, &d->findings[i]) && goes_with(d, f, &d->findings[i]) &&
			    may_cancel(d, &d->findings[j]) && goes_with(d, f, &d->findings[j]))
				n = cancels(all, a + b) ? 2 : 0;
		}
	return n;
}

static void merge(struct diff *d, struct diff_finding *into, struct diff_finding *f)
{
	for (size_t i = 0; i < d->pair_count; i++)
		if (d->pairs[i].finding == f->id)
			d->pairs[i].finding = into->id;
	into->bytes_old += f->bytes_old;
	into->bytes_new += f->bytes_new;
	into->blocks_old += f->blocks_old;
	into->blocks_new += f->blocks_new;
	f->bytes_old = f->bytes_new = 0; /* dropped together with those that change nothing */
}

static size_t heaviest(const struct diff *d, const bool *tried)
{
	size_t most = d->count;

	for (size_t i = 0; i < d->count; i++)
		if (!tried[i] && may_cancel(d, &d->findings[i]) &&
		    (most == d->count ||
		     llabs(change(&d->findings[i])) > llabs(change(&d->findings[most]))))
			most = i;
	return most;
}

static void name_moved(struct diff *d, struct diff_finding *f)
{
	const struct diff_pair *most = NULL;

	for (size_t i = 0; i < d->pair_count; i++)
		if (d->pairs[i].finding == f->id &&
		    (!most || diff_size(&d->pairs[i]) > diff_size(most)))
			most = &d->pairs[i];
	f->pair = (size_t)(most - d->pairs);
	f->category = most->category;
	f->owner = *diff_owner(most);
	f->kind = change(f) > 0 ? DIFF_GROWN : change(f) < 0 ? DIFF_SHRUNK : DIFF_MOVED;
}

/* The place of the finding, 1 + index; 0 = none yet. */
size_t diff_find_moves(struct diff *d)
{
	struct diff_finding *f = find_moves(d);

	return f ? (size_t)(f - d->findings) + 1 : 0;
}

void diff_find_cancelling(struct diff *d, size_t moved)
{
	bool *tried = need_new(d->count + 1);
	size_t found[PARTNERS], n, i;

	while ((i = heaviest(d, tried)) < d->count) {
		tried[i] = true;
		n = find_partners(d, i, found);
		if (n && !moved) {
			moved = i + 1;
			d->findings[i].cause = CAUSE_MOVED;
		} else if (n) {
			merge(d, &d->findings[moved - 1], &d->findings[i]);
		}
		for (size_t k = 0; k < n; k++)
			merge(d, &d->findings[moved - 1], &d->findings[found[k]]);
	}
	if (moved)
		name_moved(d, &d->findings[moved - 1]);
	free(tried);
}
