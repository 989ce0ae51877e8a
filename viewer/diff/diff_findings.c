/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns differing pairs into findings, the largest first: those with a common cause, then the lines
 * of one forward method together, then single lines. Finally it reports whether the peak moved to
 * another phase.
 */
#include <math.h>

#include "../base/sorted.h"
#include "diff_causes.h"

/*
 * Changes that cancel out: the bytes of one line are held by another line now, or in other blocks.
 * They become one finding, which says so and comes last. Findings with another cause are unchanged.
 */

#define PARTNERS 2 /* most findings that cancel one */

/* ---- pairs: gone in one place, and new in another one */

#define TELLING 1000 /* changes below this part of the total (1/1000) are ignored */

static bool one_sided(const struct diff *d, const struct diff_pair *p)
{
	return diff_differs(p) && (!p->old_site || !p->new_site) &&
	       diff_size(p) > d->new.shot.total / TELLING;
}

/* Whether these are the same blocks at another place. */
static bool may_be_moved(const struct diff *d, const struct diff_pair *gone,
			 const struct diff_pair *new)
{
	return !new->old_site &&one_sided(d, new) && gone->category == new->category &&
	       gone->blocks_old == new->blocks_new &&diff_like_sizes(
					   gone->old_sizes, new->new_sizes, gone->blocks_old);
}

static double score_of(const struct diff *d, const struct diff_pair *gone,
		       const struct diff_pair *new)
{
	return 2 * diff_same_place(d, gone, new, false) +
	       !strcmp(gone->old_site->module, new->new_site->module) - fabs(gone->at - new->at);
}

/* Makes a finding of the pairs that changed places, before the rest becomes findings. Returns 1 +
 * its index; 0 = none. */
static size_t find_moves(struct diff *d)
{
	struct diff_finding *f = NULL;
	struct diff_match *all = NULL;
	size_t count = 0, room = 0;

	for (size_t i = 0; i < d->pair_count; i++)
		for (size_t j = 0;
		     one_sided(d, &d->pairs[i]) && !d->pairs[i].new_site && j < d->pair_count; j++)
			if (may_be_moved(d, &d->pairs[i], &d->pairs[j]))
				*need_item(all, count, room) = (struct diff_match){
					i, j, score_of(d, &d->pairs[i], &d->pairs[j])
				};
	diff_sort_matches(all, count);
	for (size_t k = 0; k < count; k++) {
		if (d->pairs[all[k].old].finding || d->pairs[all[k].new].finding)
			continue;
		f = f ? f : diff_new_finding(d, CAUSE_MOVED);
		diff_add_pair(f, &d->pairs[all[k].old]);
		diff_add_pair(f, &d->pairs[all[k].new]);
	}
	free(all);
	return f ? (size_t)(f - d->findings) + 1 : 0;
}

/* ---- findings that cancel each other */

static int64_t change(const struct diff_finding *f)
{
	return (int64_t)(f->bytes_new - f->bytes_old);
}

static bool may_cancel(const struct diff *d, const struct diff_finding *f)
{
	return (f->cause == CAUSE_LINE || f->cause == CAUSE_FUNCTION) &&
	       (uint64_t)llabs(change(f)) > d->new.shot.total / TELLING;
}

/* Whether they are of the same module and class, with opposite changes. */
static bool goes_with(const struct diff *d, const struct diff_finding *a,
		      const struct diff_finding *b)
{
	return may_cancel(d, b) && a->category == b->category &&
	       (change(a) > 0) != (change(b) > 0) &&
	       !strcmp(diff_site_of(&d->pairs[a->pair])->module,
		       diff_site_of(&d->pairs[b->pair])->module);
}

/* Whether two changes add up to nothing, apart from the allocator's rounding. */
static bool cancels(int64_t a, int64_t b)
{
	return llabs(a + b) <= llabs(a) / 50;
}

/* Finds one, or else two, findings that cancel f; returns their number, 0 = none. */
static size_t find_partners(const struct diff *d, const struct diff_finding *f,
			    size_t found[PARTNERS])
{
	for (size_t more = 0; more < PARTNERS; more++)
		for (found[0] = 0; found[0] < d->count; found[0]++)
			for (found[1] = found[0] + more;
			     found[1] < (more ? d->count : found[0] + 1); found[1]++) {
				const struct diff_finding *a = &d->findings[found[0]];
				const struct diff_finding *b = &d->findings[found[1]];

				if (goes_with(d, f, a) && goes_with(d, f, b) &&
				    cancels(change(f), change(a) + (more ? change(b) : 0)))
					return 1 + more;
			}
	return 0;
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
	const struct diff_finding *most =
		GREATEST_OF(f, d->findings, d->count, !tried[f - d->findings] && may_cancel(d, f),
			    (uint64_t)llabs(change(f)));

	return most ? (size_t)(most - d->findings) : d->count;
}

static void name_moved(struct diff *d, struct diff_finding *f)
{
	const struct diff_pair *most =
		GREATEST_OF(p, d->pairs, d->pair_count, p->finding == f->id, diff_size(p));

	f->pair = (size_t)(most - d->pairs);
	f->category = most->category;
	f->owner = *diff_owner(most);
	f->kind = change(f) > 0 ? DIFF_GROWN : change(f) < 0 ? DIFF_SHRUNK : DIFF_MOVED;
}

/* Merges findings that cancel out into the one of the pairs that changed places. */
static void find_cancelling(struct diff *d, size_t moved)
{
	bool *tried = need_new(d->count + 1);
	size_t found[PARTNERS], n, i;

	while ((i = heaviest(d, tried)) < d->count) {
		tried[i] = true;
		n = find_partners(d, &d->findings[i], found);
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

/* Pairs to merge with the pair in facts: those of the same class and line, or of the same forward
 * method, because one change of the code changes many of its lines. */
static bool is_like(const struct diff *d, const struct diff_pair *p, const void *facts)
{
	const struct diff_pair *first = facts;
	bool all = diff_site_of(first)->module[0] && p->category == CATEGORY_activations;

	return p == first || ((p->category == first->category || d->no_classes) &&
			      diff_same_place(d, p, first, !all));
}

static void find_rest(struct diff *d)
{
	for (;;) {
		const struct diff_pair *first =
			GREATEST_OF(p, d->pairs, d->pair_count, diff_differs(p), diff_size(p));

		if (!first)
			return;
		diff_collect(d, &(struct diff_rule){ .cause = diff_site_of(first)->module[0]
								      ? CAUSE_FUNCTION
								      : CAUSE_LINE,
						     .takes = is_like,
						     .facts = first });
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

	return ORDER(rank(x), rank(y)) ?: ORDER(w, v) ?: x->pair < y->pair ? -1 : 1;
}

/* Adds a finding for a peak in another phase, as the second, because the first is its reason. */
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

/* Bytes by which the framework's cache changed beyond the change of its blocks; 0 if they are no
 * more than another order of requests could cause. */
static int64_t diff_reserved(const struct diff *d)
{
	uint64_t old = d->old.reserved.bytes, new = d->new.reserved.bytes;
	int64_t change = (int64_t)(new - old);
	int64_t apart = change - (int64_t)(d->new.peak - d->old.peak);
	int64_t enough = (int64_t)reserved_varies(old > new ? old : new);

	if (!old || !new || (apart < 0) != (change < 0))
		return 0;
	return llabs(apart) >= enough && llabs(change) >= enough ? apart : 0;
}

/* Adds a finding for the cache: the first if it changed by more than any line and ten times as much
 * as the blocks' peak, else the last, because the first is the reason for the peak's change. */
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
	last->id = UINT32_MAX; /* no pair belongs to it */
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
	moved = find_moves(d);
	find_rest(d);
	find_cancelling(d, moved);
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
