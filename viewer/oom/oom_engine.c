/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A serving engine that runs out of memory. Names of functions on the stack show the phase it was
 * in; its KV cache takes a fixed share of the device and leaves the rest for other requests.
 * Two signs show an engine, and only in a program without backward passes: a cache made
 * outside of passes by a function named for it, or the profiling run that finds the largest
 * cache. A cache that grows with each pass belongs to a program that calls a model by itself.
 * The last function is about caches of any program.
 */

#include "oom.h"

/* The innermost function with such a name decides. caches: the row counts only if the request is
 * for the cache. */
static const struct {
	const char *words, *phase;
	bool caches;
} engine_phases[] = {
	{ "profile_run", "profile run", false },
	{ "determine_available_memory", "profile run", false },
	{ "profile_max_num_token", "profile run", false },
	{ "capture", "CUDA graph capture", false },
	{ "warmup", "warm-up", false },
	{ "warm_up", "warm-up", false },
	{ "cache", "making the KV cache", true },
	{ "buffers", "making the KV cache", true }, /* SGLang: MHATokenToKVPool._create_buffers */
};

static const char *phase_of(const struct frame *f, bool caches)
{
	const char *name = strrchr(f->function, '.');

	name = name ? name + 1 : f->function;
	for (size_t i = 0; i < sizeof(engine_phases) / sizeof(engine_phases[0]); i++)
		if (engine_phases[i].caches <= caches && strstr(name, engine_phases[i].words))
			return engine_phases[i].phase;
	return NULL;
}

/* By the name of the function, because at a failure perhaps no pass has used the cache yet. SGLang:
 * MHATokenToKVPool. */
static bool makes_cache(const struct owner *owner)
{
	return strcasestr(owner->function, "kv_cache") || strstr(owner->function, "KVPool.");
}

static void add_cache(struct oom *o)
{
	uint32_t passes = o->shot.model->spans.forwards;

	FOR_BLOCKS (b, &o->shot.moment) {
		const struct position *born = model_born(o->shot.model, b);
		struct owner owner = owners_find(&o->timeline->owners, b);
		bool is_named = makes_cache(&owner), stays = passes > born->forwards + 1;

		if (born->stage != STAGE_OUTSIDE ||
		    (!is_named && !(stays && b->category == CATEGORY_kv_cache)))
			continue;
		o->engine.named |= is_named;
		o->engine.cache += b->size;
		o->engine.pieces++;
	}
}

void oom_engine(struct oom *o)
{
	struct stacks *s = &o->timeline->stacks;
	bool caches = o->wanted.category == CATEGORY_kv_cache || makes_cache(&o->wanted_owner);
	struct oom_engine *e = &o->engine;

	if (o->shot.model->spans.trains)
		return;
	e->wanted = caches;
	e->named = makes_cache(&o->wanted_owner);
	e->cache = caches ? o->block : 0;
	add_cache(o);
	stacks_read_python(s, o->refusal.event.stack);
	for (size_t i = 0; i < s->count && !e->phase; i++) {
		e->phase = owners_is_plumbing(s->frames[i].file) ? NULL
								 : phase_of(&s->frames[i], caches);
		e->owner = (struct owner){ .function = s->frames[i].function,
					   .file = s->frames[i].file,
					   .line = s->frames[i].line };
		if (strstr(s->frames[i].function, "Sampler") ||
		    strstr(s->frames[i].function, "compute_logits"))
			e->samples = true;
	}
	if (!(e->named && e->cache) && (!e->phase || strcmp(e->phase, "profile run") != 0))
		*e = (struct oom_engine){ 0 };
	else if (!e->phase) {
		e->phase = o->shot.model->spans.forwards ? "serving"
			   : caches			 ? "making the KV cache"
							 : "start-up";
		e->owner = o->wanted_owner;
	}
}

/* Empty room that a cache class allocated before it stored anything. */
static bool is_room_of_cache(const struct oom *o, const struct block *b)
{
	return model_signs(o->shot.model, b->stack) & STACK_CACHE && oom_is_room(o, b);
}

uint64_t remedy_shorter_cache(const struct oom *o, char *what, char *how)
{
	struct oom_held room = { 0 };
	struct owner owner;

	FOR_BLOCKS (b, &o->shot.moment)
		if (is_room_of_cache(o, b))
			oom_hold(&room, b);
	if (is_room_of_cache(o, &o->wanted))
		oom_hold(&room, &o->wanted);
	if (o->engine.phase || room.bytes < o->capacity / 10)
		return 0;
	owner = owners_find(&o->timeline->owners, &room.largest);
	oom_say(what,
		"Make the cache of %s for the sequences and positions that are used (the prompt's "
		"and the answer's), not for the most that there can be",
		WHO(&owner));
	oom_say(how, "%s of room that its class made ahead. Half of it, if half is enough",
		B(room.bytes));
	return room.bytes / 2;
}
