/* SPDX-License-Identifier: Apache-2.0 */
/* The result of a search as text and as JSON: the table of cards, then the owners of the peak, then
 * why cards do not fit. */
#include <stdio.h>
#include <string.h>

#include "../base/human.h"
#include "../documents/columns.h"
#include "search_rows.h"

#define REMEDIES 3

void search_document(struct search *s, struct emit *out, const char *key)
{
	struct search_rows cards = { .search = s }, largest = { .search = s },
			   lines = { .search = s }, unused = { .search = s };
	const struct row_fit row = { .cards = search_rows_cards(&cards),
				     .largest = search_rows_largest(&largest),
				     .lines = search_rows_lines(&lines),
				     .unused = search_rows_unused(&unused),
				     .runs = s->ran,
				     .runs_kept = s->kept };

	document_write(out, key, &document_fit, &row);
	search_rows_free(&cards);
	search_rows_free(&largest);
	search_rows_free(&lines);
}

static void table(struct search *s, struct emit *out)
{
	static const struct text_column columns[] = {
		TEXT_COLUMN("card", fit_card_card, 2, -16),
		TEXT_COLUMN("setting", fit_card_setting, 2, -8),
		TEXT_COLUMN("fits", fit_card_word, 2, -4),
		TEXT_COLUMN("capacity", fit_card_capacity_bytes, 1, 9),
		TEXT_COLUMN("allocated", fit_card_peak_bytes, 1, 9),
		TEXT_COLUMN("reserved", fit_card_peak_reserved_bytes, 1, 9),
		TEXT_COLUMN("besides", fit_card_context_bytes, 1, 9),
		TEXT_COLUMN("free", fit_card_left, 1, 9),
		TEXT_COLUMN("how known", fit_card_how, 2, -3),
	};
	struct search_rows r = { .search = s };
	struct rows_fit_card rows = search_rows_cards(&r);

	/* The column exists only if there are settings. */
	if (s->plan.varied.count) {
		emit_columns(out, fit_card, &rows, columns, 0);
	} else {
		struct text_column fewer[sizeof(columns) / sizeof(columns[0]) - 1];

		fewer[0] = columns[0];
		memcpy(fewer + 1, columns + 2, sizeof(columns) - 2 * sizeof(columns[0]));
		emit_columns(out, fit_card, &rows, fewer, 0);
	}
	search_rows_free(&r);
}

static const struct cell *first_fit(const struct search *s)
{
	for (size_t i = 0; i < s->cell_count; i++)
		if (s->cells[i].fits)
			return &s->cells[i];
	return NULL;
}

static void print_place(struct search *s, struct emit *out, const struct cell *c)
{
	char text[2048], line[1024], class[64], b[HUMAN_MAX], set[300] = "";
	const struct trial *t = c->trial;

	if (s->plan.varied.count) {
		char buf[256];

		snprintf(set, sizeof(set), " with %s",
			 vary_words(&s->plan.varied, &c->setting, buf, sizeof(buf)));
	}
	trial_string(t, "peak_text", text, sizeof(text));
	trial_string(t, "peak_class", class, sizeof(class));
	trial_string(t, "peak_line", line, sizeof(line));
	for (char *x = class; *x; x++)
		*x = *x == '_' ? ' ' : *x;
	emit_sentence(out, "  ", "Peak on %s%s: %s in use%s%.1000s; most by %.900s (%s)",
		      t->card->name, set, human_bytes(b, t->peak), text[0] ? ", " : "", text, line,
		      class);
}

/* Peaks by rank, in a world of which only some ranks were run. */
static void ranks(struct search *s, struct emit *out, const struct cell *c)
{
	static const struct text_column columns[] = {
		TEXT_COLUMN("rank", fit_rank_rank, 2, 8),
		TEXT_COLUMN("allocated", fit_rank_peak_bytes, 1, 9),
		TEXT_COLUMN("reserved", fit_rank_peak_reserved_bytes, 1, 9),
	};
	struct search_rows r = { .search = s };
	struct rows_fit_card rows = search_rows_cards(&r);
	struct row_fit_card row;
	char sentence[300], b[3][HUMAN_MAX];

	rows.fill(rows.ctx, (size_t)(c - s->cells), &row);
	if (row.has_ranks) {
		emit_line(out, "%s", "");
		emit_columns(out, fit_rank, &row.ranks, columns, 0);
		snprintf(sentence, sizeof(sentence),
			 "The other ranks of %ld were answered for, not run.", s->plan.world.size);
		emit_paragraph(out, "", "  ", sentence);
	}
	if (row.has_nccl_bytes && s->plan.world.size) {
		snprintf(sentence, sizeof(sentence),
			 "NCCL's buffers are an estimate: %s, counted in besides; on a card "
			 "they may take %s to %s.",
			 human_bytes(b[0], row.nccl_bytes), human_bytes(b[1], row.nccl_least_bytes),
			 human_bytes(b[2], row.nccl_most_bytes));
		emit_paragraph(out, "", "  ", sentence);
	}
	search_rows_free(&r);
}

/* How the run ended, unless by itself, and other remarks on it. */
static void ended(struct emit *out, const struct cell *c)
{
	static const char *const members[] = { "idle", "late", "ended" };
	char text[4096], n[HUMAN_MANY];

	if (c->trial->refusals)
		emit_sentence(out, "  ", "Memory ran out %s, and the program went on.",
			      human_many(n, c->trial->refusals, "time"));
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (trial_string(c->trial, members[i], text, sizeof(text))[0])
			emit_sentence(out, "  ", "%s", text);
}

static void rising(struct search *s, struct emit *out, const struct cell *c)
{
	struct search_rows r = { .search = s };
	struct rows_fit_card rows = search_rows_cards(&r);
	struct row_fit_card row;

	rows.fill(rows.ctx, (size_t)(c - s->cells), &row);
	if (row.has_rising)
		emit_sentence(out, "  ", "The peak rises from step to step: %s.", row.rising);
	search_rows_free(&r);
}

static void remedies(struct emit *out, const struct rows_fit_remedy *all)
{
	struct row_fit_remedy remedy;
	char sentence[4096], b[HUMAN_MAX];

	for (size_t k = 0; k < all->count && k < REMEDIES; k++) {
		all->fill(all->ctx, k, &remedy);
		snprintf(sentence, sizeof(sentence), "%s (saves %s; %s)", remedy.what,
			 human_bytes(b, remedy.saves_bytes), remedy.how_known);
		emit_item(out, k + 1, sentence);
	}
}

static void reason(struct search *s, struct emit *out, size_t i)
{
	struct search_rows r = { .search = s };
	struct rows_fit_card rows = search_rows_cards(&r);
	const struct cell *c = &s->cells[i];
	struct row_fit_card row;
	const char *with;

	rows.fill(rows.ctx, i, &row);
	with = row.setting[0] ? " with " : "";
	emit_line(out, "%s", "");
	if (c->failed)
		emit_sentence(out, "  ", "%s%s%s: %s, %.3000s", row.card, with, row.setting,
			      trial_failed(c->trial), row.error);
	else if (c->verdict == ENDING_UNSTABLE)
		emit_sentence(out, "  ", "%s%s%s is not stable%s%s", row.card, with, row.setting,
			      row.has_rising ? ": " : "", row.has_rising ? row.rising : "");
	else
		emit_sentence(out, "  ", "%s%s%s does not fit: %s: %s", row.card, with, row.setting,
			      row.cause, row.text);
	if (c->verdict == ENDING_UNSTABLE)
		ended(out, c);
	remedies(out, &row.remedies);
	search_rows_free(&r);
}

/* One reason per run that does not fit; the other cells based on that run have the same. Of several
 * settings the smallest is enough. */
static void reasons(struct search *s, struct emit *out)
{
	for (size_t i = 0; i < s->cell_count; i++) {
		const struct cell *c = &s->cells[i];
		bool said = c->fits;

		for (size_t k = 0; k < i && !said; k++)
			said = s->cells[k].verdict == c->verdict && c->verdict != ENDING_UNSTABLE &&
			       (s->cells[k].trial == c->trial || s->cells[k].card == c->card ||
				c->failed);
		if (!said)
			reason(s, out, i);
	}
}

static void largest(struct search *s, struct emit *out)
{
	static const struct text_column columns[] = {
		TEXT_COLUMN("largest that fits", fit_largest_card, 2, -17),
		TEXT_COLUMN("setting", fit_largest_setting, 2, -8),
		TEXT_COLUMN("", fit_largest_how, 2, -3),
	};
	static const struct text_column line_columns[] = {
		TEXT_COLUMN("needed", fit_line_card, 2, -17),
		TEXT_COLUMN("by a straight line", fit_line_text, 2, -8),
	};
	struct search_rows r = { .search = s };
	struct rows_fit_largest rows = search_rows_largest(&r);
	struct rows_fit_line lines = search_rows_lines(&r);

	if (s->largest_count) {
		emit_line(out, "%s", "");
		emit_columns(out, fit_largest, &rows, columns, 0);
	}
	if (s->line_count && s->line_count < 9) {
		emit_line(out, "%s", "");
		emit_columns(out, fit_line, &lines, line_columns, 0);
	}
	search_rows_free(&r);
}

static void without_effect(struct search *s, struct emit *out)
{
	struct search_rows r = { .search = s };
	struct rows_fit_unused all = search_rows_unused(&r);
	struct row_fit_unused row;

	for (size_t i = 0; i < all.count; i++)
		if (all.fill(all.ctx, i, &row))
			emit_sentence(out, "  ", "%s", row.text);
}

static void runs(const struct search *s, struct emit *out)
{
	size_t measured = 0;
	char folder[300] = "";

	for (size_t i = 0; i < s->cell_count; i++)
		measured += s->cells[i].measured;
	if (!s->temporary)
		snprintf(folder, sizeof(folder), " The page: %.200s/index.html", s->plan.folder);
	emit_line(out, "%s", "");
	emit_sentence(out, "", "%zu run%s%s.%s%s", s->ran, s->ran == 1 ? "" : "s",
		      s->kept ? ", the others were in the folder" : "",
		      measured == s->cell_count
			      ? ""
			      : " A row that was not run follows from the run on the card of the "
				"same generation that it names.",
		      folder);
}

void search_text(struct search *s, struct emit *out)
{
	const struct cell *fits = first_fit(s);
	size_t yes = 0;

	if (emit_json(out))
		return;
	for (size_t i = 0; i < s->cell_count; i++)
		yes += s->cells[i].fits;
	emit_title(out, "Fits %zu of %zu%s", yes, s->cell_count,
		   s->plan.varied.count ? " cards and settings" : " cards");
	emit_line(out, "%s", "");
	table(s, out);
	largest(s, out);
	if (fits) {
		emit_line(out, "%s", "");
		print_place(s, out, fits);
		rising(s, out, fits);
		ended(out, fits);
		without_effect(s, out);
		ranks(s, out, fits);
	}
	reasons(s, out);
	runs(s, out);
}
