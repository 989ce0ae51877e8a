/* SPDX-License-Identifier: Apache-2.0 */
#include "replay_trial.h"

#include <string.h>

const char *const replay_table[] = {
#define TRY(conf) conf,
#include "table.def"
#undef TRY
};

const size_t replay_table_count = sizeof(replay_table) / sizeof(*replay_table);

static const char *why_not(const struct replay_trial *t, int rc)
{
	if (rc)
		return "the recording cannot be read to its end";
	if (t->own.why[0])
		return t->own.why;
	if (!t->requests)
		return "the recording has no requests to PyTorch's allocator on that device";
	if (t->all.state_seq)
		return "the recording begins in the middle of the program";
	if (t->all.incomplete)
		return "the recording lacks events, or is bounded";
	return NULL;
}

void replay_trial_open(struct replay_trial *t, struct recording *recording, int device,
		       uint64_t until, const struct repeats *leave)
{
	int rc;

	*t = (struct replay_trial){ 0 };
	replay_own(&t->own, &recording->defs);
	rc = requests_read(&t->all, recording, until, leave);
	t->requests = requests_of(&t->all, device);
	t->limits.whole_pools = t->own.whole_pools;
	t->why = why_not(t, rc);
	if (!t->why)
		replay_study(t->requests, &t->own.settings);
}

void replay_trial_close(struct replay_trial *t)
{
	replay_own_free(&t->own);
	requests_free(&t->all);
}

bool replay_trial_setting(const struct replay_trial *t, const char *conf, struct alloc_settings *s)
{
	return !settings_parse_as(s, strcmp(conf, "default") ? conf : "", t->own.release,
				  (char[SETTINGS_WHY]){ 0 });
}
