/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings of PyTorch's allocator, by a replay of the requests until the refused one on the same
 * device: whether it would have been granted, and by how much. Only where blocks left room enough,
 * so that a setting may help, or where so much is cached that people would try one.
 */

#include "../../format/record.h"
#include "../replay/replay_trial.h"
#include "oom.h"

#define VISIBLE 20 /* this part of what is reserved */

static bool may_help(const struct oom *o)
{
	return o->room.cached + o->room.free >= o->block;
}

static bool can_replay(const struct oom *o)
{
	const struct refusal *r = &o->refusal;

	return r->event.kind == GMT_BLOCK_OOM && r->fail.kind && !o->shot.moment.mapped_count &&
	       o->block / UNIT < UINT32_MAX; /* larger ones cannot be written */
}

/* As recorded it is refused, as much is reserved then. */
static const char *why_not(const struct replay_trial *t, const struct replay_refusal *own)
{
	if (t->requests->own_limit && !(t->own.settings.fraction > 0))
		return "the program set a limit that is not recorded";
	if (own->what != REFUSAL_STAYS || !own->agrees)
		return "a replay with the recording's own setting does not end as "
		       "recorded";
	return NULL;
}

/* What the model was wrong by on what is recorded it may be wrong by here. */
static bool is_known(const struct replay_refusal *x, const struct replay_refusal *own)
{
	return x->what != REFUSAL_UNKNOWN && (x->bytes > own->error || !own->error);
}

/* In the table's order, until one fits. */
static void try_all(struct oom_settings *all, const struct replay_trial *t, bool one)
{
	for (size_t i = 0; i < replay_table_count && !all->fits; i++) {
		struct oom_setting *x = &all->tried[all->count];
		struct alloc_settings s;

		*x = (struct oom_setting){ .conf = replay_table[i] };
		if (!replay_trial_setting(t, x->conf, &s) || !strcmp(x->conf, t->own.conf) ||
		    (one && !s.expandable) || all->count == OOM_SETTINGS)
			continue;
		replay_refusal(&x->outcome, t, &s);
		if (!is_known(&x->outcome, &all->own))
			continue;
		all->count++;
		if (x->outcome.what == REFUSAL_FITS)
			all->fits = x;
		if (one)
			break;
	}
	say_progress_end();
}

/* The same requests, but for the workspaces of cuBLAS. */
static bool fits_with_less(const struct replay_trial *t, const struct oom *o)
{
	const struct requests *r = t->requests;
	const struct snapshot *s = &o->shot;
	struct replay_refusal outcome;

	if (oom_spared(o, &o->wanted))
		requests_life(r, r->lives.count - 1)->asked = OOM_CUBLAS_LEFT / UNIT;
	else if (o->wanted.category == CATEGORY_workspace)
		return false; /* another library's: what that does with less is not known */
	FOR_EACH (const struct block, b, s->moment.blocks, s->moment.count) {
		const uint32_t *life = map_get(&r->live, b->addr);

		if (life && oom_spared(o, b))
			requests_life(r, *life)->asked = OOM_CUBLAS_LEFT / UNIT;
	}
	replay_refusal(&outcome, t, &t->own.settings);
	return outcome.what == REFUSAL_FITS;
}

void oom_settings(struct oom_settings *all, const struct oom *o)
{
	bool asked = may_help(o) || o->room.cached >= o->room.reserved / VISIBLE;
	bool spared = oom_spared_all(o);
	struct replay_trial t;

	*all = (struct oom_settings){ 0 };
	if (!can_replay(o) || (!asked && !spared))
		return;
	replay_trial_open(&t, o->timeline->recording, o->timeline->device, o->refusal.event.seq,
			  NULL);
	if (!t.why) {
		replay_refusal(&all->own, &t, &t.own.settings);
		t.why = why_not(&t, &all->own);
	}
	snprintf(all->conf, sizeof(all->conf), "%s", t.own.conf ? t.own.conf : "");
	if (!t.why && asked)
		try_all(all, &t, !may_help(o));
	all->less_workspace = !t.why && spared && fits_with_less(&t, o);
	if (t.why && may_help(o))
		snprintf(all->why, sizeof(all->why), "%s", t.why);
	replay_trial_close(&t);
}

/* The first of those that do not help is what everybody tries. */
void oom_settings_say(const struct oom_settings *all, char text[OOM_TEXT])
{
	size_t n = strlen(text);

	if (all->why[0])
		snprintf(text + n, OOM_TEXT - n,
			 " Whether another setting of the allocator would have helped is not "
			 "known: %s.",
			 all->why);
	FOR_EACH (const struct oom_setting, x, all->tried, all->count) {
		if (strcmp(x->conf, "expandable_segments:True") || x == all->fits)
			continue;
		snprintf(text + n, OOM_TEXT - n, " %s would not help: %s, %s lacking (replayed).",
			 x->conf,
			 x->outcome.what == REFUSAL_STAYS ? "the request still fails"
							  : "an earlier request fails",
			 B(x->outcome.bytes));
	}
}
