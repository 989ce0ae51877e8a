/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the moments to compare: the higher peak of the two sides, and on the other side the most
 * similar moment of the same phase, so that a peak that moved does not make everything look new. If
 * little or nothing differs there, the passes that differ most are compared.
 */
#include "diff.h"

/* Finds leaks, unless the last step ends no higher than the first one began. */
static void find_leaks(struct diff_side *s)
{
	const struct steps *steps = &s->timeline.steps;
	size_t n = steps_number(steps);

	if (n >= 3 && steps->items[n].extent.end_bytes > steps->items[1].extent.begin_bytes)
		leaks_find(&s->leaks, &s->timeline);
}

/* seq: event of the leading side; like: span of the other side. */
static void compare_sides(struct diff *d, bool new_leads, uint64_t seq, const struct span *like)
{
	uint64_t at_old = seq, at_new = seq;

	if (new_leads)
		at_old = diff_moment_like(&d->old, like, &d->new, seq);
	else
		at_new = diff_moment_like(&d->new, like, &d->old, seq);
	diff_shot_take(&d->old.shot, &d->old, at_old);
	diff_shot_take(&d->new.shot, &d->new, at_new);
	diff_pair_rows(d);
	diff_find(d);
}

static void drop_findings(struct diff *d)
{
	for (size_t i = 0; i < d->count; i++)
		free(d->findings[i].text);
	free(d->findings);
	free(d->pairs);
	d->findings = NULL;
	d->pairs = NULL;
	d->count = d->room = d->pair_count = d->pair_room = 0;
	diff_shot_free(&d->old.shot);
	diff_shot_free(&d->new.shot);
}

static void compare_peaks(struct diff *d)
{
	bool new_leads = d->new.peak >= d->old.peak;
	const struct diff_side *leads = new_leads ? &d->new : &d->old;
	const struct diff_side *other = new_leads ? &d->old : &d->new;

	compare_sides(d, new_leads, leads->peak_seq, diff_span_like(other, leads, leads->peak_seq));
}

#define LITTLE 200 /* changes below this part of the peak (1/200) are ignored */

static uint64_t first_weight(const struct diff *d)
{
	size_t at = d->count && d->findings[0].cause == CAUSE_RESERVED; /* which is of no block */
	const struct diff_finding *f = &d->findings[at];

	return at < d->count && f->cause != CAUSE_MOVED ? diff_apart(f->bytes_old, f->bytes_new)
							: 0;
}

/* Compares where the two sides differ most, if they differ much more there than at the peak: in an
 * evaluation that stays below the peak, for instance. */
static void compare_below(struct diff *d)
{
	struct diff_spans s = diff_furthest_apart(&d->old, &d->new);
	uint64_t change = diff_apart(d->old.peak, d->new.peak);
	bool new_leads;

	if (!s.apart || d->no_lines || change > d->new.peak / LITTLE ||
	    s.apart / 4 <= first_weight(d))
		return;
	drop_findings(d);
	d->below_peak = true;
	new_leads = s.new->extent.peak >= s.old->extent.peak;
	compare_sides(d, new_leads, new_leads ? s.new->extent.peak_seq : s.old->extent.peak_seq,
		      new_leads ? s.old : s.new);
}

static void compare_all(struct diff *d)
{
	diff_find_settings(d);
	find_leaks(&d->old);
	find_leaks(&d->new);
	/* Before functions and lines are aligned, because the alignment also uses the blocks alive
	 * at the peaks. */
	diff_shot_take(&d->old.at_peak, &d->old, d->old.peak_seq);
	diff_shot_take(&d->new.at_peak, &d->new, d->new.peak_seq);
	compare_peaks(d);
	compare_below(d);
}

/* Other steps of a run decide which passes are evaluation. If only one side has evaluation, the
 * same passes of the other side became forward passes. */
static void agree_on_evaluation(struct timeline *old, struct timeline *new)
{
	struct timeline *t = steps_evaluate(&old->steps) ? old : new;

	if (steps_evaluate(&old->steps) == steps_evaluate(&new->steps))
		return;
	steps_free(&t->steps);
	steps_find_plain(&t->steps, &t->model.spans, &t->stacks);
}

int diff_make(struct diff *d, const char *old_path, const char *new_path, long device)
{
	int rc;

	*d = (struct diff){ 0 };
	rc = diff_side_open(&d->old, old_path, device);
	if (rc)
		return rc;
	rc = diff_side_open(&d->new, new_path, device);
	if (rc) {
		diff_side_close(&d->old);
		return rc;
	}
	agree_on_evaluation(&d->old.timeline, &d->new.timeline);
	compare_all(d);
	return 0;
}

void diff_free(struct diff *d)
{
	drop_findings(d);
	diff_side_close(&d->old);
	diff_side_close(&d->new);
}
