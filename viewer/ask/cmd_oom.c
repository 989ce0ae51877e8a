/* SPDX-License-Identifier: Apache-2.0 */
/* oom: why memory ran out, what held it, and what would have made room. */
#include "../answers/values.h"
#include "../oom/oom_ranks.h"
#include "command.h"

#define PARTS_NAMED 4
#define NOT_WHOLE   "; not whole (see gpumemtrace verify): "

static bool oom_rank_row(void *ctx, size_t i, struct row_oom_rank *row)
{
	const struct oom_ranks *all = ctx;
	const struct oom_rank *x = &all->items[i];

	*row = (struct row_oom_rank){ .file = x->file.path,
				      .rank = x->file.name,
				      .failed = x->failed,
				      MAYBE_THERE(wall_ns, x->failed, x->wall_ns),
				      MAYBE_THERE(block_bytes, x->failed, x->asked) };
	return true;
}

static void text_ranks(struct emit *out, const struct oom_ranks *all)
{
	const struct oom_rank *first = &all->items[0];

	if (all->count == 1)
		return;
	emit_title(out, "%s was the first of %zu to run out of memory; %zu did in all",
		   first->file.name, all->count, all->failed);
	for (size_t i = 1; i < all->failed && i < 8; i++)
		emit_line(out, "  %s %s later", all->items[i].file.name,
			  SECONDS(all->items[i].wall_ns - first->wall_ns));
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
	row.recording = first->file.path;
	row.rank = first->file.name;
	row.ranks = (struct rows_oom_rank){ all->count, oom_rank_row, all };
	row.has_values_not_computed = values_document(&values, &row.values_not_computed);
	emit_document(out, oom, &row);
	text_ranks(out, all);
	oom_text(&a, &row, top, out);
	values_text(&values, out);
	values_free(&values);
}

/* Reasons why a recording may lack a failed allocation. */
static const char *const missing_parts[] = {
	[STATE_WHOLE] = "",
	[STATE_DAMAGED] =
		", as far as it can be read: the file is damaged (see gpumemtrace verify)",
	[STATE_RUNNING] = " so far: the program is still running",
	[STATE_NO_END] =
		", which has no end: the program was killed or crashed, or the file was cut",
	[STATE_A_PART] = ", which stops before the run's end (a snapshot, or recovered)",
	[STATE_SEARCH] = ", which stops where gpumemtrace ended the run",
};

static int none_in_one(const struct oom_options *o, const struct oom_rank *x, const char *no_plan)
{
	char times[64] = "did not run out", lost[128] = "";

	if (o->nth > 1)
		snprintf(times, sizeof(times), "ran out fewer than %ld times", o->nth);
	if (x->dropped)
		snprintf(lost, sizeof(lost), "; lost while recording: %s",
			 MANY(x->dropped, "event"));
	if (no_plan[0])
		return say_error(EXIT_CHECK, "%s: %s%s", o->files[0], no_plan, lost);
	return say_error(EXIT_CHECK, "%s: memory %s in this recording%s%s", o->files[0], times,
			 missing_parts[x->state], lost);
}

/* "; not whole (see gpumemtrace verify): rank 1, rank 3 and 2 more", or "" */
static void name_parts(char *text, size_t room, const struct oom_ranks *all)
{
	size_t parts = 0;

	*text = 0;
	FOR_EACH (const struct oom_rank, x, all->items, all->count) {
		if (x->state == STATE_WHOLE && !x->dropped)
			continue;
		if (parts++ < PARTS_NAMED)
			text_add(text, room, "%s%s", parts == 1 ? NOT_WHOLE : ", ", x->file.name);
	}
	if (parts > PARTS_NAMED)
		text_add(text, room, " and %zu more", parts - PARTS_NAMED);
}

static int none_in_several(const struct oom_options *o, const struct oom_ranks *all)
{
	char parts[PARTS_NAMED * sizeof(all->items->file.name) + 128];

	name_parts(parts, sizeof(parts), all);
	return say_error(EXIT_CHECK, "memory did not run out in any of these recordings%s%s",
			 o->nth > 1 ? " so often" : "", parts);
}

static int look_at_first(struct emit *out, const struct oom_options *o, struct oom_ranks *all)
{
	struct oom_rank *first = &all->items[0];
	struct recording r;
	struct oom oom;
	int rc = recording_open(&r, first->file.path);

	if (rc)
		return rc;
	rc = oom_open(&oom, &r, (uint64_t)o->nth);
	if (!rc && !oom.refusal.nth) {
		first->state = recording_state(&r);
		first->dropped = oom.dropped;
		rc = oom.state_only ? say_error(EXIT_CHECK,
						"%s: a state at one moment does not say whether "
						"memory ran out; gpumemtrace report "
						"says what takes it",
						first->file.path)
				    : none_in_one(o, first, oom.no_plan);
	} else if (!rc) {
		oom_ranks_note(first, &r, &oom.refusal);
		all->failed += all->count == 1;
		explain_refusal(out, all, &oom, o->top);
		command_say_part(&command_oom, &r, "", out);
		oom_close(&oom);
	}
	recording_close(&r);
	return rc;
}

int check_oom(struct oom_options *o)
{
	if (!o->files)
		return say_usage("FILE is missing; see gpumemtrace oom --help");
	if (o->tries == !o->command)
		return say_usage("--try and the command that it runs go together: gpumemtrace oom "
				 "FILE --try -- COMMAND");
	return 0;
}

int run_oom(const struct oom_options *o, struct emit *out)
{
	struct oom_ranks all;
	int rc;

	if (o->command)
		return say_usage("--try is for gpumemtrace oom alone");
	rc = oom_ranks_find(&all, o->files, (uint64_t)o->nth);

	if (rc)
		return rc;
	rc = all.failed || all.count == 1 ? look_at_first(out, o, &all) : none_in_several(o, &all);
	oom_ranks_free(&all);
	return rc;
}
