/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings of PyTorch's allocator: a replay of all requests up to the refused one on the same
 * device shows whether the request would have fit, and with how many bytes to spare. Run only
 * if the free memory is at least the request, or if so much is cached that people would try a
 * setting.
 */

#include "../../format/record.h"
#include "../replay/replay_trial.h"
#include "oom.h"

#define VISIBLE 20 /* 1/VISIBLE of the reserved memory */

static bool may_help(const struct oom *o)
{
	return o->room.cached + o->room.free >= o->block;
}

/* NULL if the replay with the recording's own setting refuses the request with the same reserved
 * memory; else the reason why replays mean nothing here. */
static const char *why_not(const struct replay_trial *t, const struct replay_refusal *own)
{
	if (t->requests->own_limit && !(t->own.settings.fraction > 0))
		return "the program set a limit that is not recorded";
	if (own->what != REFUSAL_STAYS || !own->agrees)
		return "a replay with the recording's own setting does not end as "
		       "recorded";
	return NULL;
}

/* Tries the settings in the table's order until one fits. */
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
		/* the replay is allowed the error that it had on the recorded refusal */
		if (x->outcome.what == REFUSAL_UNKNOWN ||
		    (all->own.error && x->outcome.bytes <= all->own.error))
			continue;
		all->count++;
		if (x->outcome.what == REFUSAL_FITS)
			all->fits = x;
		if (one)
			break;
	}
	say_progress_end();
}

/* Replays the same requests with smaller workspaces of cuBLAS. */
static bool fits_with_less(const struct replay_trial *t, const struct oom *o)
{
	const struct requests *r = t->requests;
	const struct snapshot *s = &o->shot;
	uint64_t left = oom_cublas_left(o);
	struct replay_refusal outcome;

	if (oom_spared(o, &o->wanted, left))
		requests_life(r, r->lives.count - 1)->asked = (uint32_t)(left / UNIT);
	else if (o->wanted.category == CATEGORY_workspace)
		return false; /* another library might ask for the same with less memory */
	FOR_BLOCKS (b, &s->moment) {
		const uint32_t *life = map_get(&r->live, b->addr);

		if (life && oom_spared(o, b, left))
			requests_life(r, *life)->asked = (uint32_t)(left / UNIT);
	}
	replay_refusal(&outcome, t, &t->own.settings);
	return outcome.what == REFUSAL_FITS;
}

void oom_settings(struct oom_settings *all, const struct oom *o)
{
	bool asked = may_help(o) || o->room.cached >= o->room.reserved / VISIBLE;
	bool spared = oom_spared_all(o);
	bool small = o->block / UNIT < UINT32_MAX; /* the replay cannot hold larger requests */
	struct replay_trial t;

	*all = (struct oom_settings){ 0 };
	if (o->refusal.event.kind != GMT_BLOCK_OOM || !o->refusal.fail.kind ||
	    o->shot.moment.mapped_count || !small || (!asked && !spared))
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

/* Names the first setting that does not help, because people try that one first. */
void oom_settings_say(const struct oom_settings *all, char text[OOM_TEXT])
{
	if (all->why[0])
		text_add(text, OOM_TEXT,
			 " Whether another setting of the allocator would have helped is not "
			 "known: %s.",
			 all->why);
	FOR_EACH (const struct oom_setting, x, all->tried, all->count) {
		if (strcmp(x->conf, "expandable_segments:True") || x == all->fits)
			continue;
		text_add(text, OOM_TEXT, " %s would not help: %s, %s lacking (replayed).", x->conf,
			 x->outcome.what == REFUSAL_STAYS ? "the request still fails"
							  : "an earlier request fails",
			 B(x->outcome.bytes));
	}
}
