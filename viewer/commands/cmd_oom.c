/* SPDX-License-Identifier: Apache-2.0 */
/* oom: why memory ran out, who held it, and what would have made it fit. */

#include "../answers/values.h"
#include "../oom/oom_ranks.h"
#include "../recording/running.h"
#include "command.h"

static bool oom_rank_row(void *ctx, size_t i, struct row_oom_rank *row)
{
	const struct oom_ranks *all = ctx;
	const struct oom_rank *x = &all->items[i];

	*row = (struct row_oom_rank){ .file = x->path,
				      .rank = x->name,
				      .failed = x->failed,
				      .has_wall_ns = x->failed,
				      .wall_ns = x->wall_ns,
				      .has_block_bytes = x->failed,
				      .block_bytes = x->asked };
	return true;
}

static void text_ranks(struct emit *out, const struct oom_ranks *all)
{
	const struct oom_rank *first = &all->items[0];
	char t[HUMAN_MAX];

	if (all->count == 1)
		return;
	emit_title(out, "%s was the first of %zu to run out of memory; %zu did in all", first->name,
		   all->count, all->failed);
	for (size_t i = 1; i < all->failed && i < 8; i++)
		emit_line(out, "  %s %s later", all->items[i].name,
			  human_seconds(t, all->items[i].wall_ns - first->wall_ns));
	emit_line(out, "%s", "");
}

static void explain_refusal(struct emit *out, struct oom_ranks *all, struct oom *o, long top)
{
	struct oom_rank *first = &all->items[0];
	struct oom_answer a;
	struct row_oom row;
	struct values values;

	values_find(&values, &o->timeline->model.reads, &o->timeline->owners);
	oom_answer(&a, o);
	row = oom_document(&a);
	row.recording = first->path;
	row.rank = first->name;
	row.ranks = (struct rows_oom_rank){ all->count, oom_rank_row, all };
	row.has_values_not_computed = values_document(&values, &row.values_not_computed);
	emit_document(out, oom, &row);
	text_ranks(out, all);
	oom_text(&a, &row, top, out);
	values_text(&values, out);
	values_free(&values);
}

/* What may have kept a refusal out of this recording. */
static const char *missing_part(const struct recording *r)
{
	const struct gmt_reader_info *i = r->info;

	if (i->damaged_blocks || i->skipped_bytes)
		return ", as far as it can be read: the file is damaged (see gpumemtrace verify)";
	if (running_writes(r))
		return " so far: the program is still running";
	if (i->truncated)
		return ", which has no end: the program was killed or crashed, or the file was cut";
	return "";
}

static int none(const struct oom_options *o, const char *missing)
{
	const char *file = o->files[0];

	if (o->files[1])
		return say_error(EXIT_CHECK, "memory did not run out in any of these recordings%s",
				 o->nth > 1 ? " so often" : "");
	if (o->nth > 1)
		return say_error(EXIT_CHECK,
				 "%s: memory ran out fewer than %ld times in this recording%s",
				 file, o->nth, missing);
	return say_error(EXIT_CHECK, "%s: memory did not run out in this recording%s", file,
			 missing);
}

static int look_at_first(struct emit *out, const struct oom_options *o, struct oom_ranks *all)
{
	struct oom_rank *first = &all->items[0];
	struct recording r;
	struct oom oom;
	int rc = recording_open(&r, first->path);

	if (rc)
		return rc;
	rc = oom_open(&oom, &r, (uint64_t)o->nth);
	if (!rc && !oom.refusal.nth) {
		rc = none(o, missing_part(&r));
	} else if (!rc) {
		oom_ranks_note(first, &r, &oom.refusal);
		all->failed += all->count == 1;
		explain_refusal(out, all, &oom, o->top);
		oom_close(&oom);
	}
	recording_close(&r);
	return rc;
}

int run_oom(const struct oom_options *o, struct emit *out)
{
	struct oom_ranks all;
	int rc = oom_ranks_find(&all, o->files, (uint64_t)o->nth);

	if (rc)
		return rc;
	rc = all.failed || all.count == 1 ? look_at_first(out, o, &all) : none(o, "");
	oom_ranks_free(&all);
	return rc;
}
