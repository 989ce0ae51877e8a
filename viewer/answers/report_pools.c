/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Most of a device in one allocation, made by a program without a framework that says more: what
 * its owner puts inside is not seen, and where the owner is known, how to have it take memory as it
 * needs it.
 */
#include <string.h>

#include "../base/human.h"
#include "report.h"

static const struct pool {
	const char *library, *whose, *setting;
} pools[] = {
#define POOL(library, whose, setting) { library, whose, setting },
#include "pools.def"
#undef POOL
};

/* The owner of the innermost frame that lies in one of the libraries. */
static const struct pool *pool_of(struct report *r, const struct block *b)
{
	struct stacks *s = r->timeline.owners.stacks;

	stacks_read_native(s, b->stack, b->seq);
	for (size_t f = 0; f < s->count; f++) {
		const char *name = owners_base(s->frames[f].module);

		for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]); i++)
			if (!strncmp(name, pools[i].library, strlen(pools[i].library)))
				return &pools[i];
	}
	return NULL;
}

void report_pools(struct report *r, const struct moment *mo, struct emit *out)
{
	uint64_t total = r->timeline.model.devices[mo->device].total_bytes;
	const struct block *most = NULL;
	const struct pool *pool;
	char n[HUMAN_MAX];

	for (size_t i = 0; i < mo->count; i++)
		if (!most || mo->blocks[i].size > most->size)
			most = &mo->blocks[i];
	if (mo->framework || !most || !total || most->size < total / 2)
		return;
	pool = pool_of(r, most);
	emit_line(out,
		  "  %s are one piece, %.0f %% of the device: what its owner puts inside is "
		  "not seen.",
		  human_bytes(n, most->size), 100.0 * (double)most->size / (double)total);
	if (pool)
		emit_line(out, "  It is %s own allocator; %s lets it take memory as it needs it.",
			  pool->whose, pool->setting);
}
