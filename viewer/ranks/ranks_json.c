/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a run in JSON. */
#include <stdlib.h>
#include <string.h>

#include "../answers/parts.h"
#include "ranks_print.h"

#define LEFT_MAX 32 /* names of other files */

static void who(struct emit *out, const struct rank_file *f, const char *file)
{
	if (f->rank >= 0)
		emit_signed(out, "rank", f->rank);
	else if (f->pid)
		emit_number(out, "process", f->pid);
	if (file)
		emit_text(out, file, f->path);
}

void ranks_print_row(struct emit *out, const struct ranks_row *row, const struct ranks_result *r)
{
	struct json documents[2];

	ranks_documents(r, documents);
	emit_object(out, NULL);
	who(out, row->file, json_member(documents[0], "file").s ? NULL : "file");
	if (row->fine)
		emit_members(out, documents[0].s, (size_t)(documents[0].end - documents[0].s));
	else
		emit_text(out, "error", row->error);
	if (documents[1].s) {
		char text[512];

		emit_number(out, "step", json_unsigned(json_member(documents[1], "step")));
		emit_text(out, "phase",
			  json_string(json_member(documents[1], "phase"), text, sizeof(text)));
		emit_text(out, "text",
			  json_string(json_member(documents[1], "text"), text, sizeof(text)));
	}
	emit_end(out);
}

/* The sum of a column over the rows of one host, or of all (NULL). */
static double sum(const struct ranks_table *t, size_t column, const char *host)
{
	double all = 0;

	for (size_t i = 0; i < t->run->count; i++)
		if (t->rows[i].fine && (!host || !strcmp(t->rows[i].file->host, host)))
			all += t->rows[i].values[column].n;
	return all;
}

static size_t fine_rows(const struct ranks_table *t, const char *host)
{
	size_t n = 0;

	for (size_t i = 0; i < t->run->count; i++)
		n += t->rows[i].fine && (!host || !strcmp(t->rows[i].file->host, host));
	return n;
}

static void sums(struct emit *out, const struct ranks_table *t, const char *host)
{
	emit_number(out, "ranks", fine_rows(t, host));
	for (size_t c = 0; c < t->count; c++)
		if (t->columns[c].flags & RANKS_SUM)
			emit_signed(out, t->columns[c].key, (int64_t)sum(t, c, host));
}

static bool is_first_of_host(const struct ranks_table *t, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (!strcmp(t->rows[k].file->host, t->rows[i].file->host))
			return false;
	return t->rows[i].file->host[0];
}

static void hosts(struct emit *out, const struct ranks_table *t)
{
	emit_array(out, "hosts");
	for (size_t i = 0; i < t->run->count; i++) {
		if (!is_first_of_host(t, i))
			continue;
		emit_object(out, NULL);
		emit_text(out, "host", t->rows[i].file->host);
		sums(out, t, t->rows[i].file->host);
		emit_end(out);
	}
	emit_end(out);
}

static void stray(struct emit *out, const struct ranks_table *t, const struct ranks_strays *s,
		  size_t i)
{
	struct ranks_stray w = ranks_stray_why(s, t, i);

	emit_object(out, NULL);
	who(out, t->rows[i].file, "recording");
	emit_signed(out, t->columns[t->main].key, (int64_t)t->rows[i].values[t->main].n);
	emit_signed(out, "median", (int64_t)s->median);
	emit_signed(out, "from_median", (int64_t)w.more);
	if (w.category >= 0) {
		emit_text(out, "class", category_name((unsigned)w.category));
		emit_signed(out, "class_delta", w.category_more);
	}
	if (w.place >= 0) {
		const struct ranks_place *p = &t->places[w.place];
		struct owner o = { .function = p->function, .file = p->file, .line = p->line };

		emit_owner(out, &o);
		emit_signed(out, "line_delta", w.place_more);
	}
	emit_end(out);
}

static void missing(struct emit *out, const struct ranks_run *run)
{
	bool *gone = ranks_missing(run);

	emit_array(out, "missing");
	for (long rank = 0; gone && rank < run->world; rank++)
		if (gone[rank])
			emit_signed(out, NULL, rank);
	emit_end(out);
	free(gone);
}

static void left(struct emit *out, const struct ranks_run *run)
{
	emit_number(out, "other_files", run->left_count);
	emit_array(out, "left_alone");
	for (size_t i = 0; i < run->left_count && i < LEFT_MAX; i++)
		emit_text(out, NULL, run->left[i]);
	emit_end(out);
	if (run->note[0])
		emit_text(out, "note", run->note);
}

void ranks_print_rest(struct emit *out, const struct ranks_table *t, const struct ranks_strays *s)
{
	emit_object(out, "totals");
	sums(out, t, NULL);
	hosts(out, t);
	emit_end(out);
	if (s->known) {
		emit_object(out, "median");
		who(out, t->rows[s->middle].file, NULL);
		emit_signed(out, t->columns[t->main].key, (int64_t)s->median);
		emit_end(out);
	}
	emit_array(out, "stray");
	for (size_t i = 0; i < t->run->count; i++)
		if (s->stray[i])
			stray(out, t, s, i);
	emit_end(out);
	missing(out, t->run);
	left(out, t->run);
}
