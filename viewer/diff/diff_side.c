/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One recording of a comparison: opened, its peak and phases found, what lived at a moment taken.
 * Which moment of it is like one of the other recording: the same phase, and about as far in it,
 * for the passes of two versions of a program are not equally long.
 */
#include "diff_side.h"

#include <stdlib.h>
#include <string.h>

#include "../base/need.h"

static bool find_recompute(struct diff_side *s)
{
	const struct defs_kind *nodes = &s->recording.defs.nodes;
	struct signs signs;
	bool found = false;

	signs_init(&signs, &s->recording.defs);
	for (size_t i = 0; i < nodes->ids.room && !found; i++)
		if (nodes->ids.slots[i].used)
			found = signs_find(&signs, (uint32_t)nodes->ids.slots[i].key) &
				STACK_RECOMPUTE;
	signs_free(&signs);
	return found;
}

/* The backward node of a cast. */
static bool find_casts(const struct diff_side *s)
{
	const struct defs *defs = &s->recording.defs;
	const struct map *ids = &defs->strings.ids;

	for (size_t i = 0; i < ids->room; i++)
		if (ids->slots[i].used &&
		    !strcmp(defs_string(defs, (uint32_t)ids->slots[i].key).s, "ToCopyBackward0"))
			return true;
	return false;
}

int diff_side_open(struct diff_side *s, const char *path, long device)
{
	const struct curve *curve;
	int rc;

	*s = (struct diff_side){ 0 };
	rc = recording_open(&s->recording, path);
	if (rc)
		return rc;
	rc = timeline_open(&s->timeline, &s->recording, device);
	if (rc) {
		recording_close(&s->recording);
		return rc;
	}
	curve = model_curve(&s->timeline.model.devices[s->timeline.device]);
	s->peak = curve->peak.bytes;
	s->peak_seq = curve->peak.event.seq;
	s->recomputes = find_recompute(s);
	s->casts = find_casts(s);
	return 0;
}

void diff_side_close(struct diff_side *s)
{
	diff_sites_free(s);
	timeline_close(&s->timeline);
	recording_close(&s->recording);
}

static struct diff_row *row_of(struct diff_shot *shot, unsigned category, uint32_t site)
{
	bool fresh;
	uint32_t *at = map_put(&shot->ids, (uint64_t)category << 32 | site, &fresh);

	if (fresh) {
		*at = shot->count;
		shot->rows = need_grow(shot->rows, &shot->room, shot->count, sizeof(*shot->rows));
		shot->rows[shot->count++] = (struct diff_row){ category, site, 0, 0, 0 };
	}
	return &shot->rows[*at];
}

int diff_shot_take(struct diff_shot *out, struct diff_side *s, uint64_t seq)
{
	struct snapshot snap;
	int rc = snapshot_take(&snap, &s->timeline, seq);

	*out = (struct diff_shot){ .seq = seq };
	if (rc)
		return rc;
	out->time_ns = snap.moment.time_ns;
	out->total = snap.moment.bytes;
	out->phase = diff_phase_at(s, seq);
	out->step = steps_at(&s->timeline.steps, seq);
	memcpy(out->bytes, snap.bytes, sizeof(out->bytes));
	for (size_t i = 0; i < snap.moment.count; i++) {
		const struct block *b = &snap.moment.blocks[i];
		struct diff_row *row = row_of(out, snap.classes[i], diff_site_find(s, b));

		if (snap.classes[i] == CATEGORY_parameters && b->leaf_ns)
			out->trained += b->size;
		row->bytes += b->size;
		row->blocks++;
	}
	snapshot_free(&snap);
	return 0;
}

void diff_shot_copy(struct diff_shot *out, const struct diff_shot *shot)
{
	*out = *shot;
	out->ids = (struct map){ 0 };
	out->rows = need_new((shot->count + 1) * sizeof(*out->rows));
	memcpy(out->rows, shot->rows, shot->count * sizeof(*out->rows));
}

void diff_shot_free(struct diff_shot *shot)
{
	free(shot->rows);
	map_free(&shot->ids);
	*shot = (struct diff_shot){ 0 };
}

enum phase diff_phase_at(const struct diff_side *s, uint64_t seq)
{
	const struct span *span = steps_span(&s->timeline.steps, &s->timeline.spans, seq);

	return span ? span->phase : PHASE_SETUP;
}

const struct span *diff_highest(const struct diff_side *s, enum phase phase)
{
	const struct spans *all = &s->timeline.spans;
	const struct span *best = NULL;

	for (size_t i = 0; i < all->count; i++)
		if (all->items[i].phase == phase &&
		    (!best || all->items[i].extent.peak > best->extent.peak))
			best = &all->items[i];
	return best;
}

/* What a block was made for, in words that both recordings have: the backward node, or the function
 * of the line. */
static uint64_t maker(struct diff_side *s, uint32_t stack, uint32_t node)
{
	const struct block b = { .stack = stack, .name = node };

	if (node)
		return diff_hash_text(1, defs_string(&s->recording.defs, node).s);
	return diff_hash_text(2, owners_find(&s->timeline.owners, &b).function);
}

/* Looks for the highest moment between two events, and for the highest one of that maker. */
struct search {
	struct diff_side *side;
	struct model model;
	uint64_t from, to, maker;
	struct found {
		uint64_t bytes, seq;
	} any, alike;
};

static int look(void *ctx, const struct gmt_event *e)
{
	struct search *s = ctx;
	struct found now = { .seq = e->seq };

	model_event(&s->model, e);
	if (e->seq < s->from || e->seq > s->to)
		return 0;
	now.bytes = model_curve(&s->model.devices[s->side->timeline.device])->now;
	if (now.bytes > s->any.bytes || !s->any.seq)
		s->any = now;
	if (s->maker && e->kind == GMT_BLOCK_ALLOC && now.bytes > s->alike.bytes &&
	    maker(s->side, e->stack, e->name) == s->maker)
		s->alike = now;
	return 0;
}

/* The like one, if it is nearly as high: of two moments that are about as high, either may be the
 * highest. */
static uint64_t best_of(const struct search *s, uint64_t otherwise)
{
	if (s->alike.seq && (double)s->alike.bytes > 0.8 * (double)s->any.bytes)
		return s->alike.seq;
	return s->any.seq ? s->any.seq : otherwise;
}

int diff_moment_like(struct diff_side *s, struct diff_side *other, uint64_t seq, uint64_t *out)
{
	const struct span *theirs = steps_span(&other->timeline.steps, &other->timeline.spans, seq);
	const struct span *ours = theirs ? diff_highest(s, theirs->phase) : NULL;
	const double window = 0.1;
	struct search search = { .side = s };
	const struct extent *x, *y;
	double at, length;
	int rc;

	*out = s->peak_seq;
	if (!ours)
		return 0;
	x = &theirs->extent;
	y = &ours->extent;
	at = x->last_seq > x->first_seq
		     ? (double)(seq - x->first_seq) / (double)(x->last_seq - x->first_seq)
		     : 0;
	length = (double)(y->last_seq - y->first_seq);
	search.from = y->first_seq + (uint64_t)(at > window ? (at - window) * length : 0);
	search.to = y->first_seq + (uint64_t)((at + window < 1 ? at + window : 1) * length);
	if (x->peak_seq == seq)
		search.maker = maker(other, x->peak_stack, x->peak_node);
	model_init(&search.model, &s->recording.defs);
	rc = recording_run(&s->recording, UINT64_MAX, look, &search);
	model_free(&search.model);
	*out = best_of(&search, y->peak_seq);
	return rc;
}
