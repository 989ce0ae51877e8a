/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other settings of PyTorch's allocator, by a replay of the recorded requests: what the cache would
 * hold at most. Only where a replay with the recording's own setting holds what was recorded.
 */
#include <string.h>

#include "../replay/replay_own.h"
#include "advise.h"

#define B(n) human_bytes((char[HUMAN_MAX]){ 0 }, n)

static const char *const table[] = {
#define TRY(conf) conf,
#include "../replay/table.def"
#undef TRY
};

static void say(struct advise *a, const char *conf, uint64_t reserved, uint64_t best)
{
	struct finding *f = advise_add(a, "allocator");

	f->known = KNOWN_replayed;
	f->reserved = true;
	f->saves = f->least = reserved - best;
	f->peak = best;
	advise_put(f->setting, "%s", conf);
	advise_put(f->what, "Set PYTORCH_CUDA_ALLOC_CONF=%s: less is reserved for the same blocks",
		   conf);
	advise_put(f->how,
		   "A replay of the recorded requests reserves %s with it; with the "
		   "recording's own setting it reserves what was recorded, %s",
		   B(best), B(reserved));
}

static void try_all(struct advise *a, struct requests *r, const struct replay_own *own)
{
	struct replay_limits limits = { .whole_pools = own->whole_pools };
	struct replay_outcome o;
	uint64_t recorded, best;
	const char *conf = NULL;

	replay_study(r, &own->settings);
	replay_run(&o, r, &own->settings, &limits);
	recorded = best = o.peak_reserved_bytes;
	replay_outcome_free(&o);
	if (recorded != r->peak_reserved || r->ooms)
		return;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		struct alloc_settings s;

		if (settings_parse_as(&s, strcmp(table[i], "default") ? table[i] : "", own->release,
				      (char[SETTINGS_WHY]){ 0 }))
			continue;
		replay_run(&o, r, &s, &limits);
		if (o.peak_reserved_bytes < best && !o.ooms) {
			best = o.peak_reserved_bytes;
			conf = table[i];
		}
		replay_outcome_free(&o);
	}
	if (conf)
		say(a, conf, recorded, best);
}

void advise_allocator(struct advise *a)
{
	struct timeline *t = a->timeline;
	struct requests_all all = { 0 };
	struct replay_own own;
	struct requests *r;

	if (a->wanted_count || !t->framework || requests_read(&all, t->recording))
		return;
	replay_own(&own, &t->recording->defs);
	r = requests_of(&all, t->device);
	if (r && !own.why[0])
		try_all(a, r, &own);
	replay_own_free(&own);
	requests_free(&all);
}
