/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of a run's ranks as a document. */
#include "ranks_print.h"

#define LEFT_MAX 32 /* names of other files */

/* The rank; for a recording without one, its process. */
#define WHO(f)                                                                                   \
	.has_rank = (f)->rank >= 0, .rank = (f)->rank, .has_process = (f)->rank < 0 && (f)->pid, \
	.process = (f)->pid

void ranks_print_row(struct emit *out, const struct ranks_row *row, const struct ranks_result *r)
{
	struct json documents[2], more;
	char phase[512], text[512];

	ranks_documents(r, documents);
	more = documents[1];
	emit_document(
		out, ranks_one,
		&((struct row_ranks_one){
			WHO(row->file),
			MAYBE_THERE(file, !json_member(documents[0], "file").s, row->file->path,
				    .part = row->part, .has_document = row->fine),
			.document = { documents[0].s, (size_t)(documents[0].end - documents[0].s) },
			MAYBE_THERE(error, !row->fine, row->error, .has_step = more.s),
			.step = json_unsigned(json_member(more, "step")),
			MAYBE_THERE(phase, more.s,
				    json_string(json_member(more, "phase"), phase, sizeof(phase))),
			.has_text = more.s,
			.text = json_string(json_member(more, "text"), text, sizeof(text)) }));
}

static bool sum_of(const void *ctx, size_t column, const char **name, int64_t *n)
{
	const struct ranks_sums *s = ctx;

	*name = s->table->columns[column].key;
	*n = (int64_t)ranks_sum(s, column);
	return s->table->columns[column].flags & RANKS_SUM;
}

static struct figures sums(const struct ranks_sums *s)
{
	return (struct figures){ s->table->count, sum_of, s };
}

static bool host_row(void *ctx, size_t i, struct row_ranks_host *row)
{
	struct ranks_answer *d = ctx;

	if (!ranks_new_host(d->table->run, i))
		return false;
	d->of_host = (struct ranks_sums){ d->table, d->table->run->items[i].host };
	*row = (struct row_ranks_host){ .host = d->of_host.host,
					.ranks = ranks_fine(&d->of_host),
					.sums = sums(&d->of_host) };
	return true;
}

/* A row's figure in the main column. */
static bool main_of(const void *ctx, UNUSED size_t i, const char **name, int64_t *n)
{
	const struct ranks_answer *d = ctx;
	const struct ranks_table *t = d->table;

	*name = t->columns[t->main].key;
	*n = (int64_t)t->rows[d->row].values[t->main].n;
	return true;
}

static bool stray_row(void *ctx, size_t i, struct row_ranks_far *row)
{
	struct ranks_answer *d = ctx;
	const struct ranks_table *t = d->table;
	const struct owner *p = NULL;
	struct ranks_stray w;

	if (!d->strays->stray[i])
		return false;
	d->row = i;
	w = ranks_stray_why(d->strays, t, i);
	*row = (struct row_ranks_far){ WHO(t->rows[i].file),
				       .recording = t->rows[i].file->path,
				       .figure = { 1, main_of, d },
				       .median = (int64_t)d->strays->median,
				       .from_median = (int64_t)w.more,
				       MAYBE_THERE(class, w.category >= 0,
						   w.category >= 0 ? (unsigned)w.category : 0),
				       MAYBE_THERE(class_delta, w.category >= 0, w.category_more) };
	if (w.place >= 0)
		p = &t->places[w.place];
	row->has_function = row->has_file = row->has_line = row->has_line_delta = p;
	row->function = p ? p->function : NULL;
	row->file = p ? p->file : NULL;
	row->line = p ? p->line : 0;
	row->line_delta = w.place_more;
	return true;
}

static bool elsewhere_row(void *ctx, size_t i, struct row_ranks_elsewhere *row)
{
	const struct ranks_answer *d = ctx;
	const struct ranks_table *t = d->table;
	const struct ranks_elsewhere *e = &d->elsewhere[i];

	*row = (struct row_ranks_elsewhere){
		WHO(t->rows[e->row].file),
		.recording = t->rows[e->row].file->path,
		.device = e->device->number,
		.of = t->rows[e->of].file->path,
		.bytes = e->device->reserved,
		.context_bytes = ranks_elsewhere_context(t),
		.device_bytes = ranks_elsewhere_sum(t, e),
		.owner = t->places[e->device->place],
	};
	return true;
}

static bool missing_rank(const void *ctx, size_t rank, UNUSED const char **name, int64_t *n)
{
	const struct ranks_answer *d = ctx;

	*n = (int64_t)rank;
	return d->missing[rank];
}

struct row_ranks ranks_answer(struct ranks_answer *d)
{
	const struct ranks_table *t = d->table;
	const struct ranks_run *run = t->run;
	const struct ranks_strays *s = d->strays;
	size_t elsewhere;

	d->all = (struct ranks_sums){ t, NULL };
	d->row = s->middle;
	d->missing = ranks_missing(run);
	d->elsewhere = ranks_elsewhere(t, &elsewhere);
	return (struct row_ranks){
		.totals = { .ranks = ranks_fine(&d->all),
			    .sums = sums(&d->all),
			    .hosts = { run->count, host_row, d } },
		MAYBE_THERE(median, s->known,
			    { WHO(t->rows[s->middle].file), .figure = { 1, main_of, d } }),
		.stray = { s->stray ? run->count : 0, stray_row, d },
		.elsewhere = { elsewhere, elsewhere_row, d },
		.missing = { d->missing ? (size_t)run->world : 0, missing_rank, d },
		.other_files = run->left_count,
		.left_alone = { run->left_count < LEFT_MAX ? run->left_count : LEFT_MAX, NULL,
				run->left },
		MAYBE_THERE(note, run->note[0], run->note),
	};
}

void ranks_answer_free(struct ranks_answer *d)
{
	free(d->missing);
	free(d->elsewhere);
}
