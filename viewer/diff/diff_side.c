/* SPDX-License-Identifier: Apache-2.0 */
/* One recording of a comparison: opens it, finds its peak and phases, takes the blocks alive at a
 * moment. */
#include "diff_side.h"

#include <stdlib.h>
#include <string.h>

#include "../base/need.h"
#include "../base/sorted.h"

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
	const struct defs_text *strings = s->recording.defs.strings.items;

	for (size_t i = 0; i < s->recording.defs.strings.count; i++)
		if (!strcmp(strings[i].s, "ToCopyBackward0"))
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
	if (s->timeline.framework)
		reserved_find(&s->reserved, &s->timeline, s->timeline.device);
	s->recomputes = find_recompute(s);
	s->casts = find_casts(s);
	s->compiled = defs_has_file(&s->recording.defs, "torch/_functorch/_aot_autograd/");
	return 0;
}

void diff_side_close(struct diff_side *s)
{
	diff_shot_free(&s->at_peak);
	diff_shot_free(&s->shot);
	leaks_free(&s->leaks);
	diff_sites_free(s);
	timeline_close(&s->timeline);
	recording_close(&s->recording);
}

static struct diff_row *row_of_site(struct diff_shot *shot, unsigned category, uint32_t site)
{
	uint32_t at = map_number(&shot->ids, (uint64_t)category << 32 | site, shot->count);

	if (at == shot->count)
		*need_item(shot->rows, shot->count, shot->room) =
			(struct diff_row){ .category = category, .site = site };
	return &shot->rows[at];
}

/* Whether it was saved for a backward pass, and freed before any came. */
static bool is_unused(const struct model *m, const struct block *b, unsigned category)
{
	return category == CATEGORY_activations && b->died_seq &&
	       model_died(m, b)->backwards == model_born(m, b)->backwards;
}

/* Results of passes that lose most of theirs so: a local variable dies before the backward pass of
 * any. */
static uint64_t dropped_of(const struct snapshot *snap)
{
	struct pass {
		uint64_t all, unused;
	} *passes = NULL;
	size_t count = 0, room = 0;
	struct map ids = { 0 };
	uint64_t sum = 0;

	for (size_t i = 0; i < snap->moment.count; i++) {
		const struct block *b = &snap->moment.blocks[i];
		struct pass *of;

		if (snap->classes[i] != CATEGORY_activations)
			continue;
		of = map_item(&ids, model_born(snap->model, b)->forwards, passes, count, room);
		of->all += b->size;
		of->unused += is_unused(snap->model, b, snap->classes[i]) ? b->size : 0;
	}
	for (size_t i = 0; i < count; i++)
		sum += 2 * passes[i].unused > passes[i].all ? passes[i].unused : 0;
	free(passes);
	map_free(&ids);
	return sum;
}

/* The script's line with the most recent activation. */
static struct owner latest_of(struct diff_side *s, const struct snapshot *snap)
{
	const struct block *latest = NULL;
	const struct diff_site *site;

	for (size_t i = 0; i < snap->moment.count; i++) {
		const struct block *b = &snap->moment.blocks[i];

		if (snap->classes[i] == CATEGORY_activations &&
		    !model_born(snap->model, b)->in_node && (!latest || b->seq > latest->seq))
			latest = b;
	}
	if (!latest)
		return (struct owner){ .function = "", .file = "" };
	site = &s->sites[diff_site_find(s, latest)];
	return site->caller.file[0] ? site->caller : site->owner;
}

static void add_block(struct diff_shot *out, struct diff_side *s, const struct block *b,
		      unsigned category)
{
	const struct model *m = &s->timeline.model;
	struct diff_row *row = row_of_site(out, category, diff_site_find(s, b));

	if (category == CATEGORY_parameters && model_is_leaf(m, b))
		out->trained += b->size;
	row->bytes += b->size;
	row->unused += is_unused(m, b, category) ? b->size : 0;
	row->blocks++;
	row->first_seq = row->first_seq && row->first_seq < b->seq ? row->first_seq : b->seq;
}

static void take_sizes(struct diff_shot *out, struct diff_side *s, const struct snapshot *snap)
{
	size_t *next = need_new((out->count + 1) * sizeof(*next)), at = 0;

	out->blocks = snap->moment.count;
	out->sizes = need_new((out->blocks + 1) * sizeof(*out->sizes));
	for (size_t i = 0; i < out->count; i++) {
		out->rows[i].sizes = next[i] = at;
		at += out->rows[i].blocks;
	}
	for (size_t i = 0; i < out->blocks; i++) {
		const struct block *b = &snap->moment.blocks[i];
		const struct diff_row *row =
			row_of_site(out, snap->classes[i], diff_site_find(s, b));

		out->sizes[next[row - out->rows]++] = b->size;
	}
	for (size_t i = 0; i < out->count; i++)
		if (out->rows[i].blocks > 1)
			qsort(&out->sizes[out->rows[i].sizes], out->rows[i].blocks,
			      sizeof(*out->sizes), sorted_numbers);
	free(next);
}

void diff_shot_take(struct diff_shot *out, struct diff_side *s, uint64_t seq)
{
	struct snapshot snap;

	snapshot_take(&snap, &s->timeline, seq);
	*out = (struct diff_shot){ .seq = seq };
	out->time_ns = snap.moment.time_ns;
	out->total = snap.moment.bytes;
	out->phase = diff_phase_at(s, seq);
	out->step = steps_at(&s->timeline.steps, seq);
	memcpy(out->bytes, snap.bytes, sizeof(out->bytes));
	for (size_t i = 0; i < snap.moment.count; i++)
		add_block(out, s, &snap.moment.blocks[i], snap.classes[i]);
	take_sizes(out, s, &snap);
	out->latest = latest_of(s, &snap);
	out->passes = snapshot_passes(&snap, 0, 1u << CATEGORY_activations);
	out->dropped = dropped_of(&snap);
	snapshot_free(&snap);
}

void diff_shot_at(struct diff_side *s, uint64_t seq)
{
	const struct diff_shot *known = &s->at_peak;

	if (seq != known->seq) {
		diff_shot_take(&s->shot, s, seq);
		return;
	}
	s->shot = *known;
	s->shot.ids = (struct map){ 0 };
	s->shot.rows = need_new((known->count + 1) * sizeof(*known->rows));
	memcpy(s->shot.rows, known->rows, known->count * sizeof(*known->rows));
	s->shot.sizes = need_new((known->blocks + 1) * sizeof(*known->sizes));
	memcpy(s->shot.sizes, known->sizes, known->blocks * sizeof(*known->sizes));
}

void diff_shot_free(struct diff_shot *shot)
{
	free(shot->rows);
	free(shot->sizes);
	map_free(&shot->ids);
	*shot = (struct diff_shot){ 0 };
}

enum phase diff_phase_at(const struct diff_side *s, uint64_t seq)
{
	const struct span *span = steps_span(&s->timeline.steps, &s->timeline.model.spans, seq);

	return span ? span->phase : PHASE_SETUP;
}
