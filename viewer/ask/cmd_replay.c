/* SPDX-License-Identifier: Apache-2.0 */
/* replay: replays the recorded requests in a model of PyTorch's allocator with other settings. */
#include "../base/outfile.h"
#include "../replay/replay_trial.h"
#include "command.h"

struct replay_view {
	struct replay_trial trial;
	struct replay_try *tries;
	size_t count, room, best;
	struct replay_try own; /* the settings of the recording */
	struct packing packing;
	uint64_t used_bound; /* NO_NUMBER: not all uses are known */
};

static int add_setting(struct replay_view *v, const char *conf)
{
	struct replay_try *t = need_item(v->tries, v->count, v->room);
	const char *text = strcmp(conf, "default") ? conf : "";
	char why[SETTINGS_WHY];

	*t = (struct replay_try){ .conf = conf };
	if (!settings_parse(&t->settings, text, v->trial.own.release, why))
		return 0;
	return say_usage("--alloc-conf %s: %s", conf, why);
}

/* The settings of the recorded run. If they cannot be replayed, the default is used. */
static void own_settings(struct replay_view *v)
{
	v->own.conf = v->trial.own.conf;
	v->own.settings = v->trial.own.settings;
	if (v->trial.own.why[0])
		say_note("The recording's own setting cannot be replayed (%s): the default is "
			 "taken in its place.",
			 v->trial.own.why);
}

static int choose_settings(struct replay_view *v, const struct replay_options *o)
{
	int rc = 0;

	for (char **c = o->confs; c && *c && !rc; c++)
		rc = add_setting(v, *c);
	if (v->count)
		return rc;
	if (strcmp(v->own.conf, "default"))
		rc = add_setting(v, v->own.conf);
	for (size_t i = 0; i < replay_table_count && !rc; i++)
		rc = add_setting(v, replay_table[i]);
	return rc;
}

static bool is_better(const struct replay_outcome *a, const struct replay_outcome *b)
{
	if (a->ooms != b->ooms)
		return a->ooms < b->ooms;
	if (a->peak_reserved_bytes != b->peak_reserved_bytes)
		return a->peak_reserved_bytes < b->peak_reserved_bytes;
	return a->retries < b->retries;
}

static void run_all(struct replay_view *v)
{
	struct requests *r = v->trial.requests;

	if (v->trial.why)
		replay_study(r, &v->own.settings);
	for (size_t i = 0; i < v->count; i++) {
		struct replay_try *t = &v->tries[i];

		replay_run(&t->outcome, r, &t->settings, &v->trial.limits);
		if (is_better(&t->outcome, &v->tries[v->best].outcome))
			v->best = i;
	}
	replay_run(&v->own.outcome, r, &v->own.settings, &v->trial.limits);
	packing_make(&v->packing, r);
	say_progress_end();
}

static bool setting_row(void *ctx, size_t i, struct row_replay_setting *row)
{
	const struct replay_view *v = ctx;
	const struct replay_outcome *o = &v->tries[i].outcome;
	uint64_t peak = o->peak_bytes, reserved = o->peak_reserved_bytes;

	*row = (struct row_replay_setting){ .alloc_conf = v->tries[i].conf,
					    .peak_bytes = peak,
					    .peak_reserved_bytes = reserved,
					    .fragmentation_bytes = reserved - peak,
					    .retries = o->retries,
					    .ooms = o->ooms };
	return true;
}

static struct row_replay replay_row(struct replay_view *v)
{
	const struct requests *r = v->trial.requests;

	return (struct row_replay){ .settings = { v->count, setting_row, v },
				    .lower_bound_bytes = v->packing.lower_bound,
				    .packed_bytes = v->packing.packed,
				    .used_bound_bytes = v->used_bound,
				    .best = v->tries[v->best].conf,
				    .device = r->device,
				    .capacity_bytes = v->trial.limits.capacity
							      ? v->trial.limits.capacity
							      : r->limit,
				    .requests = v->own.outcome.events,
				    .agreeing_requests = v->own.outcome.agree,
				    .recorded_alloc_conf = v->own.conf,
				    .recorded_peak_reserved_bytes = r->peak_reserved,
				    .recorded_ooms = r->ooms };
}

static void text_best(struct emit *out, const struct replay_view *v)
{
	const struct replay_try *best = &v->tries[v->best];
	uint64_t own = v->own.outcome.peak_reserved_bytes, now = best->outcome.peak_reserved_bytes;

	if (best->outcome.ooms < v->own.outcome.ooms)
		emit_sentence(out, "",
			      "Best: %s. %s would fail; with the recording's "
			      "settings %" PRIu64 ".",
			      best->conf, MANY(best->outcome.ooms, "request"), v->own.outcome.ooms);
	else if (now < own)
		emit_sentence(out, "",
			      "Best: %s. It reserves %s less than the recording's settings: %s, "
			      "not %s.",
			      best->conf, B(own - now), B_APART(now, own), B_APART(own, now));
	else
		emit_sentence(out, "",
			      "None of them reserves less than the recording's settings (%s).",
			      v->own.conf);
}

static void text_trust(struct emit *out, const struct replay_view *v)
{
	const struct replay_outcome *o = &v->own.outcome;

	emit_sentence(
		out, "",
		"With the recording's settings (%s) the model reserves the recorded bytes after "
		"%s of %s.",
		v->own.conf, N(o->agree), MANY(o->events, "request"));
}

static void print_settings(struct emit *out, struct replay_view *v, struct row_replay *row)
{
	static const struct text_column columns[] = {
		TEXT_COLUMN("setting", replay_setting_alloc_conf, 2, -24, .style = COLUMN_KEY),
		TEXT_COLUMN("reserved", replay_setting_peak_reserved_bytes, 2, 10),
		TEXT_COLUMN("in blocks", replay_setting_peak_bytes, 2, 10),
		TEXT_COLUMN("in no block", replay_setting_fragmentation_bytes, 2, 10),
		TEXT_COLUMN("retries", replay_setting_retries, 2, 7),
		TEXT_COLUMN("failed", replay_setting_ooms, 2, 7),
	};
	char a[HUMAN_MANY];

	emit_title(out, "%s on device %d, at most reserved with each setting",
		   human_many(a, row->requests, "request"), v->trial.requests->device);
	if (row->capacity_bytes)
		emit_line(out, "  The allocator can have %s of the device.",
			  human_bytes(a, row->capacity_bytes));
	emit_line(out, "%s", "");
	emit_columns(out, replay_setting, &row->settings, columns, 0);
	emit_line(out, "%s", "");
	emit_sentence(out, "  ",
		      "  Lower bounds: %s for a planner that knows the future, %s alive at once.",
		      human_bytes(a, row->packed_bytes), B(row->lower_bound_bytes));
	if (row->used_bound_bytes != NO_NUMBER)
		emit_sentence(out, "  ",
			      "  With each block alive from its first to its last use only: %s.",
			      B(row->used_bound_bytes));
	if (row->recorded_ooms)
		emit_line(out, "  %s requests fail in the recording.",
			  human_count(a, row->recorded_ooms));
	emit_line(out, "%s", "");
	text_best(out, v);
	text_trust(out, v);
}

static int curve(const char *path, const struct replay_view *v)
{
	struct outfile out;
	int rc = outfile_open(&out, path, "request,", "a curve");

	if (!rc)
		replay_curve(out.f, v->tries, v->count);
	return rc ? rc : outfile_commit(&out);
}

/* Finds the peak if each block lived from its first to its last use only. */
static int find_used_bound(struct replay_view *v, struct recording *recording)
{
	struct model m;
	int rc;

	v->used_bound = NO_NUMBER;
	if (!v->trial.all.uses)
		return 0;
	rc = moments_read(recording, &m, NULL);
	v->used_bound = uses_bound(&m, v->trial.requests->device);
	if (v->used_bound != NO_NUMBER && v->used_bound > v->packing.lower_bound)
		v->used_bound = v->packing.lower_bound;
	model_free(&m);
	return rc;
}

static int show_settings(struct replay_view *v, const struct replay_options *o,
			 struct recording *recording, struct emit *out)
{
	struct row_replay row;
	int rc;

	run_all(v);
	rc = find_used_bound(v, recording);
	if (rc)
		return rc;
	row = replay_row(v);
	emit_document(out, replay, &row);
	print_settings(out, v, &row);
	return o->curve ? curve(o->curve, v) : 0;
}

/* Whether all blocks existed before the first event, as in a snapshot without a history. */
static bool is_state(const struct requests *r)
{
	const struct request_life *last = rows_at(&r->lives, r->lives.count - 1);

	return last->there;
}

/* A device that does not exist is wrong usage, as in the other commands. */
static int no_requests(const struct replay_options *o)
{
	if (o->device < 0)
		return say_unreadable("%s: no request to PyTorch's allocator was recorded",
				      o->file);
	return say_usage("%s: no request to PyTorch's allocator was recorded for device %ld",
			 o->file, o->device);
}

int run_replay(const struct replay_options *o, struct emit *out, struct recording *recording)
{
	struct replay_view v = { 0 };
	int rc;

	rc = replay_trial_open(&v.trial, recording, o->device > INT32_MAX ? -2 : (int)o->device,
			       UINT64_MAX, NULL);
	own_settings(&v);
	v.trial.limits.keep_levels = o->curve;
	v.trial.limits.capacity = (uint64_t)o->capacity.amount.value;
	if (!rc)
		rc = choose_settings(&v, o);
	if (!rc && !v.trial.requests)
		rc = no_requests(o);
	if (!rc && is_state(v.trial.requests))
		rc = say_unreadable(
			"%s: it has only the state at one moment and no history of requests, so it "
			"cannot be replayed. Record the run, or the snapshot's history",
			o->file);
	if (!rc)
		rc = show_settings(&v, o, recording, out);
	for (size_t i = 0; i < v.count; i++)
		replay_outcome_free(&v.tries[i].outcome);
	replay_outcome_free(&v.own.outcome);
	replay_trial_close(&v.trial);
	free(v.tries);
	return rc;
}
