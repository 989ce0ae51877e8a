/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs that differ -> findings, the heaviest first: those of a cause, then the lines of one
 * forward method together, then single lines; at last, whether the peak moved to another phase.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/need.h"
#include "diff.h"

int64_t diff_delta(const struct diff_pair *p)
{
	return (int64_t)(p->bytes_new - p->bytes_old);
}

static uint64_t size_of_change(const struct diff_pair *p)
{
	return (uint64_t)(diff_delta(p) < 0 ? -diff_delta(p) : diff_delta(p));
}

const struct diff_site *diff_site_of(const struct diff_pair *p)
{
	return p->new_site ? p->new_site : p->old_site;
}

const struct diff_side *diff_side_of(const struct diff *d, const struct diff_pair *p)
{
	return p->new_site ? &d->new : &d->old;
}

const struct owner *diff_owner(const struct diff_pair *p)
{
	return &diff_site_of(p)->owner;
}

bool diff_takes_classes(const struct diff *d, const struct diff_pair *p, const void *ctx)
{
	const struct diff_classes *c = ctx;

	(void)d;
	return 1u << p->category & c->classes && diff_delta(p) * c->more >= 0;
}

bool diff_differs(const struct diff_pair *p)
{
	return !p->finding && p->bytes_old != p->bytes_new;
}

static enum diff_kind kind_of(const struct diff_finding *f)
{
	if (!f->bytes_old)
		return DIFF_NEW;
	if (!f->bytes_new)
		return DIFF_GONE;
	return f->bytes_new > f->bytes_old ? DIFF_GROWN : DIFF_SHRUNK;
}

static struct diff_finding *new_finding(struct diff *d, enum diff_cause cause)
{
	uint32_t id = (uint32_t)d->count + 1;

	*need_item(d->findings, d->count, d->room) =
		(struct diff_finding){ .cause = cause, .id = id };
	return &d->findings[id - 1];
}

static void add_pair(struct diff_finding *f, const struct diff_pair *p)
{
	f->bytes_old += p->bytes_old;
	f->bytes_new += p->bytes_new;
	f->blocks_old += p->blocks_old;
	f->blocks_new += p->blocks_new;
}

/* The pair that the finding is named after: of the class with the greatest change of those that may
 * name it, the one with the greatest change. */
static size_t naming_pair(const struct diff *d, uint32_t finding, uint32_t named_by)
{
	int64_t by_class[CATEGORIES] = { 0 }, most = -1;
	uint32_t may = 0; /* classes that are there at all: their changes may sum up to nothing */
	size_t best = SIZE_MAX;
	unsigned class = 0;

	for (size_t i = 0; i < d->pair_count; i++)
		if (d->pairs[i].finding == finding) {
			by_class[d->pairs[i].category] += diff_delta(&d->pairs[i]);
			may |= 1u << d->pairs[i].category;
		}
	may &= named_by ? named_by : may;
	for (unsigned c = 0; c < CATEGORIES; c++)
		if (llabs(by_class[c]) > most && may & 1u << c) {
			most = llabs(by_class[c]);
			class = c;
		}
	for (size_t i = 0; i < d->pair_count; i++)
		if (d->pairs[i].finding == finding && d->pairs[i].category == class &&
		    (best == SIZE_MAX ||
		     size_of_change(&d->pairs[i]) > size_of_change(&d->pairs[best])))
			best = i;
	return best;
}

struct diff_finding *diff_collect(struct diff *d, enum diff_cause cause, uint32_t named_by,
				  bool (*takes)(const struct diff *, const struct diff_pair *,
						const void *),
				  const void *ctx)
{
	struct diff_finding *f = NULL;

	for (size_t i = 0; i < d->pair_count; i++) {
		struct diff_pair *p = &d->pairs[i];

		if (!diff_differs(p) || !takes(d, p, ctx))
			continue;
		f = f ? f : new_finding(d, cause);
		p->finding = (uint32_t)d->count;
		add_pair(f, p);
	}
	if (!f)
		return NULL;
	f->pair = naming_pair(d, (uint32_t)d->count, named_by);
	if (f->pair == SIZE_MAX)
		f->pair = naming_pair(d, (uint32_t)d->count, 0);
	f->category = d->pairs[f->pair].category;
	f->owner = *diff_owner(&d->pairs[f->pair]);
	f->kind = kind_of(f);
	return f;
}

/* The line that a pair is of; NULL: it has none. */
static const struct diff_place *line_of(const struct diff *d, const struct diff_pair *p)
{
	return diff_innermost(diff_side_of(d, p), diff_site_of(p));
}

static uint32_t function_of(const struct diff *d, const struct diff_pair *p)
{
	return diff_side_of(d, p)->functions[line_of(d, p)->function].common;
}

/* What belongs to the pair in ctx: the same class, and the same line; or the same forward method,
 * where one change of the code changes many lines. */
static bool takes_like(const struct diff *d, const struct diff_pair *p, const void *ctx)
{
	const struct diff_pair *first = ctx;
	const struct diff_place *a = line_of(d, p), *b = line_of(d, first);

	if (p == first)
		return true;
	if (p->category != first->category || !a || !b ||
	    function_of(d, p) != function_of(d, first))
		return false;
	return (diff_site_of(first)->module[0] && p->category == CATEGORY_activations) ||
	       a->common == b->common;
}

static void find_rest(struct diff *d)
{
	for (;;) {
		const struct diff_pair *first = NULL;

		for (size_t i = 0; i < d->pair_count; i++)
			if (diff_differs(&d->pairs[i]) &&
			    (!first || size_of_change(&d->pairs[i]) > size_of_change(first)))
				first = &d->pairs[i];
		if (!first)
			return;
		diff_collect(d,
			     first->new_site && first->new_site->module[0] ? CAUSE_FUNCTION
									   : CAUSE_LINE,
			     0, takes_like, first);
	}
}

/* Bytes of the change; half of them where it goes against the change of the peak. */
static double weight(const struct diff *d, const struct diff_finding *f)
{
	double delta = (double)f->bytes_new - (double)f->bytes_old;
	double all = (double)d->new.shot.total - (double)d->old.shot.total;
	double size = delta < 0 ? -delta : delta;

	return delta * all < 0 ? size / 2 : size;
}

static int by_weight(const void *a, const void *b, void *ctx)
{
	const struct diff_finding *x = a, *y = b;
	double v = weight(ctx, x), w = weight(ctx, y);

	if (v != w)
		return v < w ? 1 : -1;
	return x->pair < y->pair ? -1 : 1;
}

/* Second place: the first finding is what moved it. */
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
	new_finding(d, CAUSE_PEAK);
	memmove(&d->findings[2], &d->findings[1], (d->count - 2) * sizeof(f));
	d->findings[1] = f;
}

/* Bytes that went from one line of a function to another are no finding. */
static void drop_moves(struct diff *d)
{
	size_t kept = 0;

	for (size_t i = 0; i < d->count; i++)
		if (d->findings[i].bytes_old != d->findings[i].bytes_new)
			d->findings[kept++] = d->findings[i];
	d->count = kept;
}

void diff_find(struct diff *d)
{
	diff_causes(d);
	find_rest(d);
	drop_moves(d);
	for (size_t i = 0; i < d->count; i++)
		diff_say(d, &d->findings[i]);
	if (d->count)
		qsort_r(d->findings, d->count, sizeof(*d->findings), by_weight, d);
	find_moved(d);
	if (d->count > 1 && d->findings[1].kind == DIFF_MOVED)
		diff_say(d, &d->findings[1]);
}
