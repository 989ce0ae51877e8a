/* SPDX-License-Identifier: Apache-2.0 */
#include "reserved.h"

#include "../base/human.h"
#include "../stacks/owner_words.h"

static struct owner asking_line(struct timeline *t, const struct gmt_event *e)
{
	const struct block b = { .stack = e->stack,
				 .seq = e->seq,
				 .name = e->kind == GMT_BLOCK_ALLOC ? e->name : 0,
				 .memory = e->kind == GMT_BLOCK_ALLOC ? 0 : GMT_MEM_DEVICE };

	return owners_find(&t->owners, &b);
}

void reserved_find(struct reserved_peak *out, struct timeline *t)
{
	struct model *m = &t->model;
	const struct peak *p = &m->devices[t->device].reserved.peak;
	struct moment mo = { .device = t->device, .seq = p->event.seq, .framework = t->framework };

	*out = (struct reserved_peak){ .bytes = p->bytes,
				       .seq = p->event.seq,
				       .time_ns = p->event.time_ns };
	if (!p->bytes)
		return;
	model_take(m, &mo);
	out->blocks = mo.bytes;
	out->pools = private_pools(m, &mo, &t->owners);
	out->owner = out->pools.bytes >= p->bytes / 2 ? out->pools.items[0].owner
						      : asking_line(t, &p->event);
	moment_free(&mo);
}

const char *reserved_words(const struct reserved_peak *p, char *buf, size_t room)
{
	const struct pool_sum *most = p->pools.items;
	char bytes[HUMAN_MAX], who[OWNER_WORDS];

	if (p->pools.bytes >= p->bytes / 2)
		snprintf(buf, room, "%s of it lie in private pools of %s (%s)",
			 human_bytes(bytes, most->bytes), pool_words(most->kind),
			 owner_words(&most->owner, who, sizeof(who), 0));
	else
		snprintf(buf, room, "it was largest when %s allocated",
			 owner_words(&p->owner, who, sizeof(who), 0));
	return buf;
}

#define FEWEST 3 /* intervals between steps */

uint64_t reserved_growth(const struct timeline *t)
{
	size_t last = steps_number(&t->steps), first, grew = 0;
	uint64_t now = 0, before = 0, start = 0;
	struct levels_cursor c;

	while (last && !t->steps.items[last].ended)
		last--;
	first = last / 4 ? last / 4 : 1;
	if (last < first + FEWEST)
		return 0;
	levels_first(&c, &t->model.lives.levels);
	for (size_t i = first; i <= last; i++) {
		for (; c.now && c.now->seq <= t->steps.items[i].extent.last_seq; levels_next(&c))
			now = c.now->device == t->device ? c.now->reserved : now;
		start = i == first ? now : start;
		grew += i > first && now > before;
		before = now;
	}
	return now > start && 2 * grew >= last - first ? (now - start) / (last - first) : 0;
}
