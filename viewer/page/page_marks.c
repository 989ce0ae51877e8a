/* SPDX-License-Identifier: Apache-2.0 */
/* Marks in a chart: out of memory, emptied caches, the user's ranges. */
#include "../../format/record.h"
#include "../base/ending.h"
#include "../moments/refusals.h"
#include "page.h"

enum { MARKS = 3000, OOM_KEYS = 4 };

static void marks_add(struct track *t, int kind, const struct lives_mark *e)
{
	size_t room = page_room(t->page, kind == MARK_RANGE ? MARKS : 2 * MARKS, 50);

	if (t->mark_count >= room) {
		t->marks_left_out++;
		return;
	}
	*need_item(t->marks, t->mark_count, t->mark_room) = (struct track_mark){ kind, e };
}

/* Makes an out-of-memory event a key moment, so that its live blocks are kept; only the first ones
 * and the last. */
static void add_key(struct track *t, const struct lives_mark *e)
{
	struct page_lives *l = &t->blocks;
	struct key_moment k = {
		.seq = e->seq, .time_ns = e->ns, .name = "oom", .number = ++t->ooms
	};

	if (t->ooms > OOM_KEYS)
		l->keys[t->oom_key] = k;
	else if (l->key_count < LIVES_KEYS)
		l->keys[t->oom_key = l->key_count++] = k;
}

/* Leaves out ranges that the steps already show, and internal ranges of CUDA's C++ libraries. */
static bool is_users(const struct track *t, const struct lives_mark *e)
{
	return !words_begin(defs_string(&t->recording->defs, e->name).s,
			    ONE_OF("Optimizer.", "ProfilerStep#", "cub::", "thrust::"));
}

static void add_mark(struct track *t, const struct lives_mark *e, bool reported)
{
	bool here = e->device == t->timeline->device;

	if (here && refusals_is_one(e, reported)) {
		marks_add(t, MARK_OOM, e);
		add_key(t, e);
	}
	if (here && e->kind == GMT_BLOCK_ALLOC)
		marks_add(t, MARK_RETRY, e);
	if (t->parts == TRACK_WHOLE && (e->kind == GMT_RANGE_BEGIN || e->kind == GMT_MARK) &&
	    is_users(t, e))
		marks_add(t, MARK_RANGE, e);
}

void marks_find(struct track *t)
{
	const struct row_store *marks = &t->timeline->model.lives.marks;
	bool reported = refusals_reported(&t->timeline->model.lives);

	for (uint32_t i = 0; i < marks->count; i++)
		add_mark(t, rows_at(marks, i), reported);
}

uint64_t marks_first_oom(const struct track *t)
{
	for (size_t i = 0; i < t->mark_count; i++)
		if (t->marks[i].kind == MARK_OOM)
			return t->marks[i].event->ns;
	return 0;
}

void marks_emit(struct track *t)
{
	static const char *const kinds[] = { "oom", "retry", "range" };
	struct emit *out = t->page->out;

	emit_array(out, "marks");
	FOR_EACH (const struct track_mark, k, t->marks, t->mark_count) {
		const struct lives_mark *e = k->event;
		struct defs_text name = defs_string(&t->recording->defs, e->name);

		emit_object(out, NULL);
		emit_text(out, "kind", kinds[k->kind]);
		emit_number(out, "seq", e->seq);
		emit_number(out, "time_ns", e->ns);
		if (k->kind == MARK_OOM)
			emit_number(out, "asked", e->size);
		if (k->kind == MARK_OOM)
			emit_number(out, "stack", track_stack(t, e->stack, e->seq));
		if (k->kind == MARK_RANGE)
			emit_number(out, "text", names_text(&t->page->names, name.s, name.len));
		emit_end(out);
	}
	emit_end(out);
	emit_number(out, "marks_left_out", t->marks_left_out);
}
