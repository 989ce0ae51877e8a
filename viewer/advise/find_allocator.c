/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other settings of PyTorch's allocator: the recorded requests are replayed with each, and the
 * most reserved memory is compared. Only if the replay with the recording's own setting
 * reproduces the recorded figure.
 */

#include "../replay/replay_trial.h"
#include "advise.h"

/* own: the recorded setting. PyTorch rejects "default", so that setting is described instead. */
static void say_setting(struct advise *a, const char *conf, const char *own, uint64_t reserved,
			uint64_t best)
{
	struct finding *f = advise_add(a, "allocator");
	bool none = !strcmp(conf, "default");
	char without[80] = "";

	f->known = KNOWN_replayed;
	f->reserved = true;
	f->saves = f->least = reserved - best;
	f->peak = best;
	advise_put(f->setting, "%s", none ? "" : conf);
	advise_put(f->what, "%s PYTORCH_CUDA_ALLOC_CONF=%s%s to reserve less for the same blocks",
		   none ? "Remove the setting" : "Set", none ? own : conf,
		   none ? ", in the script if that sets it," : "");
	if (a->repeats.steps)
		snprintf(without, sizeof(without),
			 " (%zu steps that repeat the step before them are left out)",
			 a->repeats.steps);
	advise_put(f->how,
		   "A replay of the recorded requests%s reserves %s with this setting, and %s "
		   "with the recorded one, which is what PyTorch reserved",
		   without, human_apart((char[HUMAN_MAX]){ 0 }, best, reserved),
		   human_apart((char[HUMAN_MAX]){ 0 }, reserved, best));
}

static void try_all(struct advise *a, const struct replay_trial *t)
{
	const struct requests *r = t->requests;
	struct replay_limits limits = t->limits;
	struct replay_outcome o;
	uint64_t recorded, best;
	const char *conf = NULL;

	replay_run(&o, r, &t->own.settings, &t->limits);
	recorded = best = o.peak_reserved_bytes;
	replay_outcome_free(&o);
	if (recorded != r->peak_reserved || r->ooms)
		return;
	for (size_t i = 0; i < replay_table_count; i++) {
		struct alloc_settings s;

		if (!replay_trial_setting(t, replay_table[i], &s))
			continue;
		limits.stop_at = best; /* it cannot be the best any more */
		replay_run(&o, r, &s, &limits);
		if (o.peak_reserved_bytes < best && !o.ooms) {
			best = o.peak_reserved_bytes;
			conf = replay_table[i];
		}
		replay_outcome_free(&o);
	}
	if (conf)
		say_setting(a, conf, t->own.conf ? t->own.conf : "", recorded, best);
}

void advise_allocator(struct advise *a)
{
	struct timeline *t = a->timeline;
	struct replay_trial trial;

	if (!t->framework)
		return;
	replay_trial_open(&trial, t->recording, t->device, UINT64_MAX, &a->repeats);
	if (!trial.why)
		try_all(a, &trial);
	replay_trial_close(&trial);
}
