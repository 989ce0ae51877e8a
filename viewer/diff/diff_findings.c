/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns differing pairs into findings, the largest first: those with a common cause, then the lines
 * of one forward method together, then single lines. Finally it reports whether the peak moved to
 * another phase.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diff_causes.h"

/* Pairs to merge with the pair in ctx: those of the same class and line, or of the same forward
 * method, because one change of the code changes many of its lines. */
static bool takes_like(const struct diff *d, const struct diff_pair *p, const void *ctx)
{
	const struct diff_pair *first = ctx;
	bool all = diff_site_of(first)->module[0] && p->category == CATEGORY_activations;

	return p == first || ((p->category == first->category || d->no_classes) &&
			      diff_same_place(d, p, first, !all));
}

static void find_rest(struct diff *d)
{
	for (;;) {
		const struct diff_pair *first = NULL;

		for (size_t i = 0; i < d->pair_count; i++)
			if (diff_differs(&d->pairs[i]) &&
			    (!first || diff_size(&d->pairs[i]) > diff_size(first)))
				first = &d->pairs[i];
		if (!first)
			return;
		diff_collect(d, diff_site_of(first)->module[0] ? CAUSE_FUNCTION : CAUSE_LINE, 0,
			     takes_like, first);
	}
}

/* Bytes of the change; half of them if it opposes the change of the peak. */
static double weight(const struct diff *d, const struct diff_finding *f)
{
	double delta = (double)f->bytes_new - (double)f->bytes_old;
	double all = (double)d->new.shot.total - (double)d->old.shot.total;
	double size = delta < 0 ? -delta : delta;

	return delta * all < 0 ? size / 2 : size;
}

/* Findings that do not change the peak come last. */
static unsigned rank(const struct diff_finding *f)
{
	return f->cause == CAUSE_MOVED ? 2 : f->cause == CAUSE_ROUNDING ? 1 : 0;
}

static int by_weight(const void *a, const void *b, void *ctx)
{
	const struct diff_finding *x = a, *y = b;
	double v = weight(ctx, x), w = weight(ctx, y);
	unsigned first = rank(x), second = rank(y);

	if (first != second)
		return first < second ? -1 : 1;
	if (v != w)
		return v < w ? 1 : -1;
	return x->pair < y->pair ? -1 : 1;
}

/* Placed second, because the first finding is the reason for the move. */
static void find_moved(struct diff *d)
{
	enum phase before = diff_phase_at(&d->old, d->old.peak_seq);
	enum phase after = diff_phase_at(&d->new, d->new.peak_seq);
	enum phase looked = d->new.peak >= d->old.peak ? after : before;
	const struct span *old = diff_highest(&d->old, looked);
	const struct span *new = diff_highest(&d->new, looked);
	struct diff_finding f = { .kind = DIFF_MOVED, .cause = CAUSE_PEAK };

	if (before == after || !d->count || d->below_peak)
		return;
	f.category = d->findings[0].category;
	f.owner = d->findings[0].owner;
	f.pair = d->findings[0].pair;
	f.bytes_old = old ? old->extent.peak : 0;
	f.bytes_new = new ? new->extent.peak : 0;
	diff_new_finding(d, CAUSE_PEAK);
	memmove(&d->findings[2], &d->findings[1], (d->count - 2) * sizeof(f));
	d->findings[1] = f;
}

/* Drops bytes that moved between lines of a function, and findings that became part of another
 * one. */
static void drop_moves(struct diff *d)
{
	size_t kept = 0;

	for (size_t i = 0; i < d->count; i++)
		if (d->findings[i].bytes_old != d->findings[i].bytes_new ||
		    d->findings[i].cause == CAUSE_MOVED)
			d->findings[kept++] = d->findings[i];
	d->count = kept;
}

int64_t diff_reserved(const struct diff *d)
{
	uint64_t old = d->old.reserved.bytes, new = d->new.reserved.bytes;
	int64_t change = (int64_t)(new - old);
	int64_t apart = change - (int64_t)(d->new.peak - d->old.peak);
	int64_t enough = (int64_t)reserved_varies(old > new ? old : new);

	if (!old || !new || (apart < 0) != (change < 0))
		return 0;
	return llabs(apart) >= enough && llabs(change) >= enough ? apart : 0;
}

/* First if it changed by more than any line did and by ten times as much as the peak of the blocks,
 * else last: the first finding is what changed the peak. */
static void find_reserved(struct diff *d)
{
	int64_t apart = diff_reserved(d);
	const struct reserved_peak *of = apart > 0 ? &d->new.reserved : &d->old.reserved;
	struct diff_finding *last, f;
	double size = fabs((double)apart),
	       peak = fabs((double)(int64_t)(d->new.peak - d->old.peak));
	size_t at;

	if (!apart)
		return;
	last = diff_new_finding(d, CAUSE_RESERVED);
	last->kind = apart > 0 ? DIFF_GROWN : DIFF_SHRUNK;
	last->id = UINT32_MAX; /* no pair is of it */
	last->category = CATEGORY_unknown;
	last->owner = of->owner;
	last->bytes_old = d->old.reserved.bytes;
	last->bytes_new = d->new.reserved.bytes;
	diff_say(d, last);
	f = *last;
	at = d->count > 1 && fmax(weight(d, &d->findings[0]), 10 * peak) >= size ? d->count - 1 : 0;
	memmove(&d->findings[at + 1], &d->findings[at], (d->count - 1 - at) * sizeof(f));
	d->findings[at] = f;
}

void diff_find(struct diff *d)
{
	size_t moved;

	if (d->no_lines) {
		find_reserved(d);
		return;
	}
	if (!d->no_classes)
		diff_causes(d);
	moved = diff_find_moves(d);
	find_rest(d);
	diff_find_cancelling(d, moved);
	drop_moves(d);
	for (size_t i = 0; i < d->count; i++)
		diff_say(d, &d->findings[i]);
	if (d->count)
		qsort_r(d->findings, d->count, sizeof(*d->findings), by_weight, d);
	find_moved(d);
	if (d->count > 1 && d->findings[1].kind == DIFF_MOVED)
		diff_say(d, &d->findings[1]);
	find_reserved(d);
}
