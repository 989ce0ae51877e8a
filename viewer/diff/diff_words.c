/* SPDX-License-Identifier: Apache-2.0 */
/* Words shared by all forms of a comparison: names, changes, the sides, the peak in one
 * sentence. */
#include "../answers/parts.h"
#include "../base/human.h"
#include "diff.h"

const char *diff_kind_name(enum diff_kind kind)
{
	static const char *const names[] = { "grown", "shrunk", "new", "gone", "moved" };

	return names[kind];
}

const char *diff_cause_name(enum diff_cause cause)
{
	static const char *const names[] = {
#define CAUSE(cause, name, say) name,
#include "diff_causes.def"
	};
	return names[cause];
}

const char *diff_percent(char buf[48], uint64_t before, uint64_t after)
{
	if (!before || before == after)
		return "";
	if (after / before >= 100)
		snprintf(buf, 48, "%s times", N(after / before));
	else
		snprintf(buf, 48, "%+.1f %%",
			 100 * ((double)after - (double)before) / (double)before);
	return buf;
}

bool diff_has_phases(const struct diff *d)
{
	for (int p = 0; p < PHASES; p++)
		if (p != PHASE_SETUP && (diff_highest(&d->old, p) || diff_highest(&d->new, p)))
			return true;
	return false;
}

const char *diff_headline(const struct diff *d, char *buf, size_t room)
{
	enum phase before = diff_phase_at(&d->old, d->old.peak_seq);
	enum phase after = diff_phase_at(&d->new, d->new.peak_seq);
	char p[48] = "";
	const char *percent = diff_percent(p, d->old.peak, d->new.peak);

	text_put(buf, room, "Peak %s -> %s: %s%s%s%s", B_APART(d->old.peak, d->new.peak),
		 B_APART(d->new.peak, d->old.peak), CHANGE(d->new.peak - d->old.peak),
		 percent[0] ? " (" : "", percent, percent[0] ? ")" : "");

	if (before != after)
		text_add(buf, room, ", %s -> %s", phases[before].text, phases[after].text);
	else if (diff_has_phases(d))
		text_add(buf, room, ", in the %s", phases[before].noun);
	return buf;
}

/* Facts about the environment that are compared. */
static const struct {
	const char *key, *what;
	int setting; /* 1 + enum diff_setting, in place of a key */
} grounds[DIFF_GROUNDS] = {
	{ "torch.version", "torch", 0 },
	{ "python.version", "Python", 0 },
	{ "driver.version", "CUDA driver", 0 },
	{ NULL, "device", 0 }, /* and whether it is a simulated one */
	{ "env.PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", 0 },
	{ "env.PYTORCH_ALLOC_CONF", "PYTORCH_ALLOC_CONF", 0 },
	{ NULL, "Python stacks", 1 + DIFF_PYTHON },
	{ NULL, "native stacks", 1 + DIFF_NATIVE },
	{ NULL, "autograd's tags", 1 + DIFF_TAGS },
};

static void ground(const struct diff_side *s, size_t at, char *buf, size_t room)
{
	const char *key = grounds[at].key;

	if (!grounds[at].setting && !key)
		device_words(&s->recording.defs, s->timeline.device, buf, room);
	else
		snprintf(buf, room, "%s",
			 grounds[at].setting
				 ? diff_recorded(&s->recording.defs, grounds[at].setting - 1)
				 : defs_meta(&s->recording.defs, key).s);
}

size_t diff_grounds(const struct diff *d, struct diff_ground out[DIFF_GROUNDS])
{
	size_t n = 0;

	for (size_t i = 0; i < DIFF_GROUNDS; i++) {
		struct diff_ground *g = &out[n];

		g->what = grounds[i].what;
		ground(&d->old, i, g->old, sizeof(g->old));
		ground(&d->new, i, g->new, sizeof(g->new));
		if (strcmp(g->old, g->new) && !(grounds[i].setting && (!g->old[0] || !g->new[0])))
			n++;
	}
	return n;
}
