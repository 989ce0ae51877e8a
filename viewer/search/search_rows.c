/* SPDX-License-Identifier: Apache-2.0 */
#include "search_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/human.h"

void search_rows_free(struct search_rows *r)
{
	free(r->vary);
	r->vary = NULL;
}

static struct row_fit_vary setting(struct search_rows *r, const struct setting *s)
{
	const struct varied *v = &r->search->plan.varied;

	free(r->vary);
	r->vary = vary_json(v, s);
	vary_words(v, s, r->setting, sizeof(r->setting));
	return (struct row_fit_vary){ .value = { r->vary, strlen(r->vary) } };
}

/* ---- cards ---- */

static struct json item_of(const struct trial *t, const char *list, size_t i)
{
	struct json all = json_at(t->document, list), item = json_first(all, NULL);

	for (; i && item.s; i--)
		item = json_next(all, item, NULL);
	return item;
}

static bool remedy_row(void *ctx, size_t i, struct row_fit_remedy *row)
{
	struct search_rows *r = ctx;
	struct json item = item_of(r->cell->trial, "oom.remedies", i);

	*row = (struct row_fit_remedy){
		.what = json_string(json_member(item, "what"), r->remedy[0], sizeof(r->remedy[0])),
		.saves_bytes = json_unsigned(json_member(item, "saves_bytes")),
		.how_known = json_string(json_member(item, "how_known"), r->remedy[1],
					 sizeof(r->remedy[1]))
	};
	return item.s;
}

static bool rank_row(void *ctx, size_t i, struct row_fit_rank *row)
{
	struct search_rows *r = ctx;
	struct json item = item_of(r->cell->trial, "ranks", i);

	*row = (struct row_fit_rank){ .rank = json_unsigned(json_member(item, "rank")),
				      .peak_bytes = json_unsigned(json_member(item, "peak_bytes")),
				      .peak_reserved_bytes = json_unsigned(
					      json_member(item, "peak_reserved_bytes")),
				      .recording = json_string(json_member(item, "recording"),
							       r->of_rank, sizeof(r->of_rank)) };
	return item.s;
}

static size_t members(const struct trial *t, const char *list)
{
	size_t n = 0;

	while (item_of(t, list, n).s)
		n++;
	return n;
}

static void of_ranks(struct search_rows *r, struct row_fit_card *row)
{
	const struct trial *t = r->cell->trial;

	row->ranks = (struct rows_fit_rank){ members(t, "ranks"), rank_row, r };
	row->has_ranks = row->ranks.count;
	row->has_nccl_bytes = row->has_nccl_least_bytes = row->has_nccl_most_bytes = t->nccl;
	row->nccl_bytes = t->nccl;
	row->nccl_least_bytes = t->nccl_least;
	row->nccl_most_bytes = t->nccl_most;
}

/* Growth of a peak that rises, also if the run ended before memory ran out. */
static void rises(struct search_rows *r, struct row_fit_card *row)
{
	const struct trial *t = r->cell->trial;
	const char *unit = t->by_steps ? "step" : "second";
	char b[HUMAN_MAX], n[HUMAN_MANY];

	row->rising_bytes = t->rising;
	row->rising_ends = search_ends(r->cell);
	row->has_rising_bytes = row->has_rising_ends = row->has_rising =
		t->rising && (r->cell->fits || r->cell->verdict == ENDING_UNSTABLE);
	snprintf(r->rising, sizeof(r->rising),
		 "+%s a %s, out of memory after about %s on this card", human_bytes(b, t->rising),
		 unit, human_many(n, row->rising_ends, unit));
	row->rising = r->rising;
}

static void why_not(struct search_rows *r, struct row_fit_card *row)
{
	const struct trial *t = r->cell->trial;
	char words[2048];

	if (r->cell->verdict == ENDING_UNSTABLE)
		return;

	if (r->cell->failed) {
		row->has_error = true;
		row->error = trial_failure(t, r->error, sizeof(r->error));
		return;
	}
	row->has_cause = row->has_text = row->has_remedies = !r->cell->fits;
	row->cause = trial_string(t, "oom.cause", r->cause, sizeof(r->cause));
	row->text = trial_string(t, "oom.text", r->text, sizeof(r->text));
	if (!row->cause[0]) {
		row->cause = "unknown";
		snprintf(r->text, sizeof(r->text),
			 "A library was refused memory, and the program failed: %s",
			 trial_string(t, "last_words", words, 1900));
	}
	row->remedies = (struct rows_fit_remedy){ members(t, "oom.remedies"), remedy_row, r };
}

static const char *how(struct search_rows *r)
{
	const struct cell *c = r->cell;

	if (c->measured)
		return "run";
	snprintf(r->how, sizeof(r->how), "from %s", c->trial->card->name);
	return r->how;
}

static void where(struct search_rows *r, struct row_fit_card *row)
{
	const struct trial *t = r->cell->trial;

	row->peak_text = trial_string(t, "peak_text", r->where, sizeof(r->where));
	row->peak_class = trial_string(t, "peak_class", r->class, sizeof(r->class));
	row->peak_line = trial_string(t, "peak_line", r->line, sizeof(r->line));
	row->has_recording = !r->search->temporary;
	row->recording = trial_string(t, "recording", r->recording, sizeof(r->recording));
}

static bool card_row(void *ctx, size_t i, struct row_fit_card *row)
{
	struct search_rows *r = ctx;
	const struct cell *c = r->cell = &r->search->cells[i];
	const struct trial *t = c->trial;

	*row = (struct row_fit_card){
		.card = c->card->name,
		.fits = c->fits,
		.capacity_bytes = c->card->memory,
		.peak_bytes = t->peak,
		.peak_reserved_bytes = t->reserved,
		.device_bytes = c->device,
		.measured = c->measured,
		.vary = setting(r, &c->setting),
		.margin_bytes = (int64_t)c->card->memory - (int64_t)c->device,
		.context_bytes = c->device > t->reserved ? c->device - t->reserved : 0,
		.run_on = t->card->name,
		.steps = t->steps,
		.to_end = !t->early,
		.refusals = t->refusals,
		.verdict = trial_verdict(c->verdict),
		.setting = r->setting,
		.word = c->fits			       ? "yes"
			: c->verdict == ENDING_REFUSED ? "no"
			: c->failed && t->limit	       ? "late"
						       : trial_verdict(c->verdict),
		.how = how(r),
		.left = c->card->memory > c->device ? c->card->memory - c->device : 0,
	};
	where(r, row);
	of_ranks(r, row);
	rises(r, row);
	row->idle = trial_string(t, "idle", r->idle, sizeof(r->idle));
	row->has_idle = row->idle[0] && c->fits;
	row->late = trial_string(t, "late", r->late, sizeof(r->late));
	row->has_late = row->late[0] && !c->failed;
	row->ended = trial_string(t, "ended", r->ended, sizeof(r->ended));
	row->has_ended = row->ended[0];
	if (!c->fits)
		why_not(r, row);
	return true;
}

struct rows_fit_card search_rows_cards(struct search_rows *r)
{
	return (struct rows_fit_card){ r->search->cell_count, card_row, r };
}

/* ---- largest values, and lines ---- */

static bool largest_row(void *ctx, size_t i, struct row_fit_largest *row)
{
	struct search_rows *r = ctx;
	const struct largest *l = &r->search->largest[i];

	*row = (struct row_fit_largest){ .card = l->card->name,
					 .vary = setting(r, &l->setting),
					 .bounded = l->high,
					 .setting = r->setting,
					 .how = l->high ? "the next does not fit"
							: "the largest that was asked for" };
	return l->low;
}

struct rows_fit_largest search_rows_largest(struct search_rows *r)
{
	return (struct rows_fit_largest){ r->search->largest_count, largest_row, r };
}

static bool line_row(void *ctx, size_t i, struct row_fit_line *row)
{
	struct search_rows *r = ctx;
	const struct fitted *f = &r->search->lines[i];
	char base[HUMAN_MAX], each[HUMAN_MAX];
	size_t at;
	const struct vary *v = vary_counted(&r->search->plan.varied, &at);

	human_bytes(base, f->base > 0 ? (uint64_t)f->base : 0);
	human_bytes(each, f->each > 0 ? (uint64_t)f->each : 0);
	snprintf(r->text, sizeof(r->text), "%s + %s x %s, off by %.1f %% at most", base, each,
		 v->name, 100 * f->error);
	*row = (struct row_fit_line){ .card = f->card->name,
				      .name = v->name,
				      .vary = setting(r, &f->setting),
				      .base_bytes = f->base,
				      .bytes_each = f->each,
				      .error = f->error,
				      .points = f->points,
				      .text = r->text };
	return true;
}

struct rows_fit_line search_rows_lines(struct search_rows *r)
{
	return (struct rows_fit_line){ r->search->line_count, line_row, r };
}

/* ---- names without effect ---- */

static bool same_figures(const struct trial *a, const struct trial *b)
{
	return a->peak == b->peak && a->reserved == b->reserved;
}

/* Whether all values of this name need the same memory, whatever the other values are. */
static bool changes_nothing(const struct search *s, size_t at)
{
	bool any = false;

	for (size_t i = 0; i < s->cell_count; i++)
		for (size_t k = 0; k < i; k++) {
			const struct cell *a = &s->cells[i], *b = &s->cells[k];

			if (a->card != b->card ||
			    !vary_same_but(&s->plan.varied, &a->setting, &b->setting, at))
				continue;
			if (!a->fits || !b->fits || !same_figures(a->trial, b->trial))
				return false;
			any = true;
		}
	return any;
}

static bool unused_row(void *ctx, size_t i, struct row_fit_unused *row)
{
	struct search_rows *r = ctx;
	const struct varied *v = &r->search->plan.varied;

	for (size_t k = 0; k < v->count; k++) {
		if (!changes_nothing(r->search, k) || i--)
			continue;
		snprintf(r->text, sizeof(r->text),
			 "With all values of %s the peak is the same to the byte: does the "
			 "program use it?",
			 v->items[k].name);
		*row = (struct row_fit_unused){ v->items[k].name, r->text };
		return true;
	}
	return false;
}

struct rows_fit_unused search_rows_unused(struct search_rows *r)
{
	size_t n = 0;

	for (size_t k = 0; k < r->search->plan.varied.count; k++)
		n += changes_nothing(r->search, k);
	return (struct rows_fit_unused){ n, unused_row, r };
}
