/* SPDX-License-Identifier: Apache-2.0 */
/* What a chart marks at a moment: memory that ran out, caches that were emptied, the user's ranges.
 */
#include <string.h>

#include "../base/need.h"
#include "page.h"

enum { MARKS = 3000, OOM_KEYS = 4 };

static void add(struct track *t, int kind, const struct gmt_event *e)
{
	size_t room = page_room(t->page, kind == MARK_RANGE ? MARKS : 2 * MARKS, 50);

	if (t->mark_count >= room) {
		t->marks_left_out++;
		return;
	}
	t->marks = need_grow(t->marks, &t->mark_room, t->mark_count, sizeof(*t->marks));
	t->marks[t->mark_count++] =
		(struct track_mark){ kind, e->seq, e->time_ns, e->size, e->name, e->stack };
}

/* Memory ran out: what lived then is kept, of the first times and of the last. */
static void add_key(struct track *t, const struct gmt_event *e)
{
	struct page_lives *l = &t->blocks;
	struct key_moment k = { e->seq, e->time_ns, "oom", ++t->ooms, t->curve.now };

	if (t->ooms > OOM_KEYS)
		l->keys[t->oom_key] = k;
	else if (l->key_count < LIVES_KEYS)
		l->keys[t->oom_key = l->key_count++] = k;
}

/* Left out: ranges that the steps already show, and those that CUDA's C++ libraries push for
 * themselves. */
static bool is_users(const struct track *t, const struct gmt_event *e)
{
	static const char *const own[] = { "Optimizer.", "ProfilerStep#", "cub::", "thrust::" };
	const char *name = defs_string(&t->recording->defs, e->name).s;

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (!strncmp(name, own[i], strlen(own[i])))
			return false;
	return true;
}

void marks_event(struct track *t, const struct gmt_event *e, const struct model *m)
{
	const struct model_device *d = &m->devices[t->timeline.device];
	bool told = t->timeline.model.devices[t->timeline.device].told;

	if (e->device == t->timeline.device && e->kind == (told ? GMT_BLOCK_OOM : GMT_MEM_FAIL)) {
		add(t, MARK_OOM, e);
		add_key(t, e);
	}
	if (d->retries > t->retries)
		add(t, MARK_RETRY, e);
	t->retries = d->retries;
	if (t->parts == TRACK_WHOLE && (e->kind == GMT_RANGE_BEGIN || e->kind == GMT_MARK) &&
	    is_users(t, e))
		add(t, MARK_RANGE, e);
}

uint64_t marks_first_oom(const struct track *t)
{
	for (size_t i = 0; i < t->mark_count; i++)
		if (t->marks[i].kind == MARK_OOM)
			return t->marks[i].time_ns;
	return 0;
}

void marks_emit(struct track *t)
{
	static const char *const kinds[] = { "oom", "retry", "range" };
	struct emit *out = t->page->out;

	emit_array(out, "marks");
	for (size_t i = 0; i < t->mark_count; i++) {
		const struct track_mark *k = &t->marks[i];
		struct defs_text name = defs_string(&t->recording->defs, k->name);

		emit_object(out, NULL);
		emit_text(out, "kind", kinds[k->kind]);
		emit_number(out, "seq", k->seq);
		emit_number(out, "time_ns", k->time_ns);
		if (k->kind == MARK_OOM)
			emit_number(out, "asked", k->bytes);
		if (k->kind == MARK_OOM)
			emit_number(out, "stack", track_stack(t, k->stack, k->seq));
		if (k->kind == MARK_RANGE)
			emit_number(out, "text", names_text(&t->page->names, name.s, name.len));
		emit_end(out);
	}
	emit_end(out);
	emit_number(out, "marks_left_out", t->marks_left_out);
}
