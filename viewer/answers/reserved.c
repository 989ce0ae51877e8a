/* SPDX-License-Identifier: Apache-2.0 */
#include "reserved.h"

#include "../base/human.h"
#include "../recording/owner_words.h"
#include "leaks.h"
#include "parts.h"

static struct pool_sums pools_at(struct timeline *t, int device, uint64_t seq)
{
	const struct model_device *d = &t->model.devices[device];
	struct moment mo = { .device = device, .seq = seq, .framework = d->framework };
	struct pool_sums pools = { 0 };

	if (!d->pools.count)
		return pools;
	model_take(&t->model, &mo);
	pools = private_pools(&t->model, &mo, &t->owners);
	moment_free(&mo);
	return pools;
}

void reserved_find(struct reserved_peak *out, struct timeline *t, int device)
{
	const struct peak *p = &t->model.devices[device].reserved.peak;

	*out = (struct reserved_peak){ .bytes = p->bytes,
				       .seq = p->event.seq,
				       .time_ns = p->event.time_ns };
	if (!p->bytes)
		return;
	out->pools = pools_at(t, device, p->event.seq);
	out->owner = out->pools.bytes >= p->bytes / 2 ? out->pools.items[0].owner
						      : asking_line(&t->owners, &p->event);
}

const char *reserved_words(const struct reserved_peak *p, char *buf, size_t room)
{
	const struct pool_sum *most = p->pools.items;
	char who[OWNER_WORDS];

	if (p->pools.bytes >= p->bytes / 2)
		snprintf(buf, room, "%s of it lie in private pools of %s (%s)", B(most->bytes),
			 pool_kinds[most->kind].text,
			 owner_words(&most->owner, who, sizeof(who), 0));
	else
		snprintf(buf, room, "it was largest when %s allocated",
			 owner_words(&p->owner, who, sizeof(who), 0));
	return buf;
}

#define VARIES_LEAST (40u << 20)

uint64_t reserved_varies(uint64_t bytes)
{
	return bytes / 20 > VARIES_LEAST ? bytes / 20 : VARIES_LEAST;
}

#define THIRDS 3

/* Each third of the steps must end with more than the one before, unlike a cache that fills up. */
uint64_t reserved_growth(const struct timeline *t)
{
	size_t last = leaks_last_step(t), first = last / 4 ? last / 4 : 1, thirds = 0;
	uint64_t now = 0, start = 0, before = 0;
	struct levels_cursor c;

	if (last < first + THIRDS)
		return 0;
	levels_first(&c, &t->model.lives.levels);
	for (size_t i = 0; i <= THIRDS; i++) {
		const struct step *step = &t->steps.items[first + i * (last - first) / THIRDS];

		for (; c.now && c.now->seq <= step->extent.last_seq; levels_next(&c))
			now = c.now->device == t->device ? c.now->reserved : now;
		start = i ? start : now;
		if (i && now > before)
			thirds++;
		before = now;
	}
	return thirds == THIRDS ? (now - start) / (last - first) : 0;
}
