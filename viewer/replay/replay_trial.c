/* SPDX-License-Identifier: Apache-2.0 */
#include "replay_trial.h"

void replay_own(struct replay_own *own, const struct defs *defs)
{
	static const char *const keys[] = { "env.PYTORCH_ALLOC_CONF", "env.PYTORCH_CUDA_ALLOC_CONF",
					    "PYTORCH_CUDA_ALLOC_CONF" };
	struct defs_text text = { 0 }, version = defs_meta(defs, "torch.version");
	long major = 2, minor = 6;

	*own = (struct replay_own){ 0 };
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys) && !text.len; i++)
		text = defs_meta(defs, keys[i]);
	own->conf = text.len ? need_copy(text.s, text.len) : need_text("default");
	if (version.len && sscanf(version.s, "%ld.%ld", &major, &minor) == 2)
		own->release = (unsigned)(major * 100 + minor);
	if (settings_parse(&own->settings, text.len ? own->conf : "", own->release, own->why))
		settings_parse(&own->settings, "", 0, (char[SETTINGS_WHY]){ 0 });
	else
		own->why[0] = 0;
	own->whole_pools = major > 2 || (major == 2 && minor >= 6);
}

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

int replay_trial_open(struct replay_trial *t, struct recording *recording, int device,
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
	return rc;
}

void replay_trial_close(struct replay_trial *t)
{
	free(t->own.conf);
	requests_free(&t->all);
}

bool replay_trial_setting(const struct replay_trial *t, const char *conf, struct alloc_settings *s)
{
	return !settings_parse(s, strcmp(conf, "default") ? conf : "", t->own.release,
			       (char[SETTINGS_WHY]){ 0 });
}
