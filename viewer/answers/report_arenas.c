/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Most of a device in one allocation, made by a program without a framework that says more: what
 * its owner puts inside is not seen, and where the owner is known, how to have it take memory as it
 * needs it.
 */
#include <string.h>

#include "../base/human.h"
#include "report.h"

static const struct arena {
	const char *library, *whose, *setting;
} arenas[] = {
#define ARENA(library, whose, setting) { library, whose, setting },
#include "arenas.def"
#undef ARENA
};

/* The owner of the innermost frame that lies in one of the libraries. */
static const struct arena *arena_of(struct report *r, const struct block *b)
{
	struct stacks *s = r->timeline.owners.stacks;

	stacks_read_native(s, b->stack, b->seq);
	for (size_t f = 0; f < s->count; f++) {
		const char *name = owners_base(s->frames[f].module);

		for (size_t i = 0; i < sizeof(arenas) / sizeof(arenas[0]); i++)
			if (!strncmp(name, arenas[i].library, strlen(arenas[i].library)))
				return &arenas[i];
	}
	return NULL;
}

void report_arena(struct report *r, const struct moment *mo, struct emit *out)
{
	uint64_t total = r->timeline.model.devices[mo->device].total_bytes;
	const struct block *most = NULL;
	const struct arena *arena;
	char n[HUMAN_MAX];

	for (size_t i = 0; i < mo->count; i++)
		if (!most || mo->blocks[i].size > most->size)
			most = &mo->blocks[i];
	if (mo->framework || !most || !total || most->size < total / 2)
		return;
	arena = arena_of(r, most);
	emit_line(out,
		  "  %s are one block, %.0f %% of the device; its contents are not "
		  "recorded.",
		  human_bytes(n, most->size), 100.0 * (double)most->size / (double)total);
	if (arena)
		emit_line(out, "  It is %s own allocator; %s lets it take memory as it needs it.",
			  arena->whose, arena->setting);
}
