/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the framework's cache outside of blocks: at the peak of the blocks, and when the cache
 * itself was largest, which may be another moment. */
#include <inttypes.h>

#include "../base/human.h"
#include "../moments/room.h"
#include "parts.h"
#include "report.h"
#include "reserved.h"

void report_find_pools(struct report *r, size_t i)
{
	struct reserved_peak peak;

	reserved_find(&peak, &r->timeline, r->moments[i].device);
	r->pools[i] = peak.pools;
}

/* The cache was larger at another moment, by more than a tenth. */
static void most_line(struct report *r, const struct moment *mo, struct emit *out)
{
	const struct model *m = &r->timeline.model;
	const struct peak *p = &m->devices[mo->device].reserved.peak;
	const struct pool_sums *pools = &r->pools[mo - r->moments];
	char when[MOMENTS_WHEN], who[OWNER_WORDS], note[OWNER_WORDS + 60];

	if (p->bytes <= mo->reserved + mo->reserved / 10)
		return;
	moments_when(m, p->event.seq, p->event.time_ns, when, sizeof(when));
	emit_figure(out, FIGURE, "reserved at most", p->bytes, when + 1);
	for (size_t i = 0; i < pools->count; i++) {
		const struct pool_sum *s = &pools->items[i];

		snprintf(note, sizeof(note), "of %s, %s", pool_words(s->kind),
			 owner_words(&s->owner, who, sizeof(who), 20));
		emit_figure(out, FIGURE, "  in private pools", s->bytes, note);
	}
}

static void retry_line(const struct model_device *d, struct emit *out)
{
	char times[32];

	snprintf(times, sizeof(times), "%" PRIu64, d->retries);
	if (d->retries)
		emit_line(out,
			  "  %-22s%10s  times the cache was emptied to make room, which stalls",
			  "allocation retries", times);
}

void report_cache(struct report *r, const struct moment *mo, struct emit *out)
{
	struct model *m = &r->timeline.model;
	const struct model_device *d = &m->devices[mo->device];
	struct room room = room_at(m, mo, NULL);
	struct pool_sums pools = private_pools(m, mo, &r->timeline.owners);
	char a[HUMAN_MAX], b[HUMAN_MAX], note[128];

	if (!mo->framework || !d->self_reported)
		return;
	if (d->asleep_most) {
		snprintf(note, sizeof(note), "allocated without physical memory, %s at most",
			 human_bytes(a, d->asleep_most));
		emit_figure(out, FIGURE, "asleep", mo->asleep, note);
	}
	human_bytes(b, mo->reserved);
	if (room.hole)
		snprintf(note, sizeof(note), "largest hole %s (reserved %s)",
			 human_bytes(a, room.hole), b);
	else
		snprintf(note, sizeof(note), "reserved %s", b);
	emit_figure(out, FIGURE, "cached, not in use", room.cached, note);
	private_pools_print(&pools, &room, FIGURE, out);
	most_line(r, mo, out);
	retry_line(d, out);
}
