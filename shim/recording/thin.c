/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first pass finds the events whose effect outlives their range; the second leaves out the
 * rest. An address belongs to one live block at a time, so a free finds its allocation.
 */
#include "thin.h"

#include "../../format/record.h"
#include "../base/intern.h"
#include "thin_sums.h"
#include "thin_table.h"
#include "thin_uses.h"

#include <string.h>

#define COUNT_BITS 16

/* Roles of an event within a range. */
enum role {
	ROLE_BY_NUMBER, /* kept, or left out if readers may skip the kind */
	ROLE_KEPT,
	ROLE_BIRTH,
	ROLE_DEATH,
	ROLE_SAVED,
	ROLE_RELEASED,
	ROLE_LAST, /* replaces the previous one of the same object */
	ROLE_BEGIN,
	ROLE_END,
	ROLE_SAMPLE, /* a sample or a moment: left out */
	ROLE_USE,    /* kept if it is the first or the last of a block that stays */
	ROLE_THINNED,
};

static struct {
	struct thin_plan plan;
	uint32_t range;		 /* index of the current or next one */
	bool framework;		 /* totals are those of its blocks */
	struct thin_table live;	 /* blocks of this range: seq of the allocation */
	struct thin_table saves; /* tensors of this range: first save << COUNT_BITS | open saves */
	struct thin_table last;	 /* objects: seq of their latest event */
	struct thin_table begun; /* ranges of the program: seq of their begin */
	struct thin_table keep;	 /* seqs of events that stay */
	struct thin_table keep_saves; /* tensors of a range: seq from which on their saves stay */
	bool no_memory;
} thin;

static const uint8_t roles[] = {
	[GMT_BLOCK_ALLOC] = ROLE_BIRTH, [GMT_BLOCK_FREE] = ROLE_DEATH,
	[GMT_MEM_ALLOC] = ROLE_BIRTH,	[GMT_MEM_FREE] = ROLE_DEATH,
	[GMT_TAG_SAVED] = ROLE_SAVED,	[GMT_TAG_RELEASED] = ROLE_RELEASED,
	[GMT_TAG_LEAF] = ROLE_LAST,	[GMT_TAG_GRAD] = ROLE_LAST,
	[GMT_TAG_MOVED] = ROLE_LAST,	[GMT_TAG_ASKED] = ROLE_LAST,
	[GMT_RANGE_BEGIN] = ROLE_BEGIN, [GMT_RANGE_END] = ROLE_END,
	[GMT_MEMINFO] = ROLE_SAMPLE,	[GMT_THINNED] = ROLE_THINNED,
	[GMT_REUSE_WAIT] = ROLE_SAMPLE, [GMT_REUSE_READY] = ROLE_SAMPLE,
	[GMT_SEGMENT_POOL] = ROLE_KEPT, [GMT_GRAPH_USE] = ROLE_KEPT,
	[GMT_USE] = ROLE_USE,		[GMT_TRANSFER] = ROLE_USE,
	[GMT_GRAPH_LAUNCH] = ROLE_USE,
};

static enum role role_of(const struct gmt_event *e)
{
	enum role role = e->kind < sizeof(roles) ? roles[e->kind] : ROLE_BY_NUMBER;

	if (role == ROLE_BY_NUMBER)
		return gmt_kind_is_extra(e->kind) ? ROLE_SAMPLE : ROLE_KEPT;
	/* segments of a framework's cache are few, and reserved bytes are computed from them */
	if (thin.framework && (e->kind == GMT_MEM_ALLOC || e->kind == GMT_MEM_FREE))
		return ROLE_KEPT;
	if ((role == ROLE_BEGIN || role == ROLE_END) && thin.plan.level < THIN_LEVEL_RANGES)
		return ROLE_KEPT;
	if (role == ROLE_USE && thin.plan.level >= THIN_LEVEL_RANGES)
		return ROLE_SAMPLE;
	if (role == ROLE_SAVED && !e->arg0)
		return ROLE_LAST; /* no release will name it */
	return role;
}

static uint64_t block_key(const struct gmt_event *e)
{
	bool block = e->kind == GMT_BLOCK_ALLOC || e->kind == GMT_BLOCK_FREE;

	return e->addr ^ (block ? (uint64_t)(e->device + 2) << 56 : 0);
}

static uint64_t object_key(const struct gmt_event *e)
{
	return intern_mix(e->arg0 ? e->arg0 : e->addr) ^ e->kind;
}

static uint64_t save_key(uint64_t tensor, uint32_t range)
{
	return intern_mix(tensor) ^ range;
}

static void thin_set(struct thin_table *t, uint64_t key, uint64_t value)
{
	if (!table_set(t, key, value))
		thin.no_memory = true;
}

static void drop(struct thin_table *t, uint64_t key)
{
	uint64_t *at = table_get(t, key);

	if (at)
		table_remove(t, at);
}

static void clear_range(void)
{
	table_clear(&thin.live);
	table_clear(&thin.saves);
	table_clear(&thin.last);
	table_clear(&thin.begun);
}

static bool inside(uint64_t seq)
{
	return thin.range < thin.plan.count && seq >= thin.plan.ranges[thin.range].first &&
	       seq <= thin.plan.ranges[thin.range].last;
}

static bool behind(uint64_t seq)
{
	return thin.range < thin.plan.count && seq > thin.plan.ranges[thin.range].last;
}

/* ---- the first pass ---- */

static void note_save(const struct gmt_event *e)
{
	uint64_t *at = table_put(&thin.saves, e->arg0);

	if (!at)
		thin.no_memory = true;
	else
		*at = *at ? *at + 1 : e->seq << COUNT_BITS | 1;
}

static void note_release(const struct gmt_event *e)
{
	uint64_t *at = table_get(&thin.saves, e->arg0);

	if (at && (--*at & ((1u << COUNT_BITS) - 1)) == 0)
		table_remove(&thin.saves, at);
}

static void keep_all(const struct thin_table *t)
{
	for (uint64_t i = 0; i < t->room; i++)
		if (t->slots[i].key)
			thin_set(&thin.keep, t->slots[i].value, 1);
}

static void note_birth(const struct gmt_event *e)
{
	thin_set(&thin.live, block_key(e), e->seq);
	if (!thin_uses_born(e->addr))
		thin.no_memory = true;
}

static void note_death(const struct gmt_event *e)
{
	uint64_t *born = table_get(&thin.live, block_key(e));

	if (!thin_uses_died(e->addr, e->size, born, &thin.keep))
		thin.no_memory = true;
	if (born)
		table_remove(&thin.live, born);
}

static void end_look(void)
{
	if (!thin_uses_end_range(&thin.keep))
		thin.no_memory = true;
	keep_all(&thin.live);
	keep_all(&thin.last);
	keep_all(&thin.begun);
	for (uint64_t i = 0; i < thin.saves.room; i++)
		if (thin.saves.slots[i].key)
			thin_set(&thin.keep_saves, save_key(thin.saves.slots[i].key, thin.range),
				 thin.saves.slots[i].value >> COUNT_BITS);
	clear_range();
	thin.range++;
}

bool thin_look(const struct gmt_event *e)
{
	while (behind(e->seq))
		end_look();
	if (e->kind == GMT_BLOCK_ALLOC)
		thin.framework = true;
	if (!inside(e->seq))
		return !thin.no_memory;
	switch (role_of(e)) {
	case ROLE_BIRTH:
		note_birth(e);
		break;
	case ROLE_DEATH:
		note_death(e);
		break;
	case ROLE_USE:
		if (!thin_uses_look(e))
			thin.no_memory = true;
		break;
	case ROLE_SAVED:
		note_save(e);
		break;
	case ROLE_RELEASED:
		note_release(e);
		break;
	case ROLE_LAST:
		thin_set(&thin.last, object_key(e), e->seq);
		break;
	case ROLE_BEGIN:
		thin_set(&thin.begun, e->arg0, e->seq);
		break;
	case ROLE_END:
		drop(&thin.begun, e->arg0);
		break;
	default:
		break;
	}
	return !thin.no_memory;
}

bool thin_turn(void)
{
	while (thin.range < thin.plan.count)
		end_look();
	thin.range = 0;
	return !thin.no_memory;
}

/* ---- the second pass ---- */

static bool is_kept(uint64_t seq)
{
	return table_get(&thin.keep, seq) != NULL;
}

/* Remembers a beginning that is left out, so that its end is left out too. */
static bool begins(struct thin_table *t, uint64_t key, bool stays)
{
	if (!stays)
		thin_set(t, key, 1);
	return stays;
}

static bool ends(struct thin_table *t, uint64_t key)
{
	uint64_t *at = table_get(t, key);

	if (at)
		table_remove(t, at);
	return !at;
}

static bool saved_stays(const struct gmt_event *e)
{
	const uint64_t *from = table_get(&thin.keep_saves, save_key(e->arg0, thin.range));
	uint64_t *count;

	if (from && e->seq >= *from)
		return true;
	count = table_put(&thin.saves, e->arg0);
	if (count)
		++*count;
	else
		thin.no_memory = true;
	return false;
}

static bool release_stays(const struct gmt_event *e)
{
	uint64_t *count = table_get(&thin.saves, e->arg0);

	if (!count)
		return true;
	if (--*count == 0)
		table_remove(&thin.saves, count);
	return false;
}

static bool stays(const struct gmt_event *e)
{
	switch (role_of(e)) {
	case ROLE_BIRTH:
		return begins(&thin.live, block_key(e), is_kept(e->seq));
	case ROLE_DEATH:
		return ends(&thin.live, block_key(e));
	case ROLE_SAVED:
		return saved_stays(e);
	case ROLE_RELEASED:
		return release_stays(e);
	case ROLE_LAST:
	case ROLE_USE:
		return is_kept(e->seq);
	case ROLE_BEGIN:
		return begins(&thin.begun, e->arg0, is_kept(e->seq));
	case ROLE_END:
		return ends(&thin.begun, e->arg0);
	case ROLE_SAMPLE:
	case ROLE_THINNED:
		return false;
	default:
		return true;
	}
}

int thin_pass(const struct gmt_event *e, const struct thin_out *out)
{
	int rc = 0;

	while (behind(e->seq)) {
		rc = rc ? rc : sums_flush(out);
		sums_end_range();
		clear_range();
		thin.range++;
	}
	sums_follow(e, thin.framework);
	if (rc || !inside(e->seq)) {
		if (e->kind == GMT_THINNED)
			sums_count(e);
		return rc ? rc : out->event(out->ctx, e);
	}
	if (stays(e)) {
		/* a use that stays does not end the stretch of left-out events */
		if (role_of(e) == ROLE_USE)
			return out->event(out->ctx, e);
		rc = sums_flush(out);
		sums_see(e);
		rc = rc ? rc : out->event(out->ctx, e);
	} else {
		rc = sums_add(e, out, 16ull << 2 * thin.plan.level);
	}
	return thin.no_memory ? -GMT_ERR_NO_MEMORY : rc;
}

int thin_finish(const struct thin_out *out, struct thin_sums *sums)
{
	int rc = sums_flush(out);

	sums_get(sums);
	return rc;
}

bool thin_begin(const struct thin_plan *plan)
{
	thin_end();
	thin.plan = *plan;
	sums_begin();
	return plan->count != 0;
}

void thin_end(void)
{
	table_free(&thin.live);
	table_free(&thin.saves);
	table_free(&thin.last);
	table_free(&thin.begun);
	table_free(&thin.keep);
	table_free(&thin.keep_saves);
	thin_uses_free();
	sums_end();
	memset(&thin, 0, sizeof(thin));
}
