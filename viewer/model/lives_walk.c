/* SPDX-License-Identifier: Apache-2.0 */
/* Births, from their rows, and changes, from theirs, side by side. */
#include "lives.h"

static void see_birth(struct lives_walk *w)
{
	const struct lives *l = w->changes.lives;

	w->born_seq =
		w->next < l->rows.count ? lives_seq(l, &lives_at(l, w->next)->born) : UINT64_MAX;
}

/* A change in the event of a birth is of a life from before, or of that one. */
static bool change_is_next(const struct lives_walk *w)
{
	const struct lives_writer *now = &w->changes.now;

	if (!w->changes.change)
		return false;
	return now->seq < w->born_seq || (now->seq == w->born_seq && now->life < w->next);
}

static void take_change(struct lives_walk *w)
{
	const struct lives *l = w->changes.lives;

	w->change = w->changes.change;
	w->now = w->changes.now;
	if (w->change == CHANGE_DIED)
		w->now.ns = lives_ns(l, &lives_at(l, w->now.life)->died);
	lives_next(&w->changes);
}

void lives_walk_next(struct lives_walk *w)
{
	const struct lives *l = w->changes.lives;

	if (change_is_next(w)) {
		take_change(w);
		return;
	}
	w->change = w->next < l->rows.count ? CHANGE_BORN : CHANGE_NONE;
	if (!w->change)
		return;
	w->now = (struct lives_writer){ w->born_seq, lives_ns(l, &lives_at(l, w->next)->born),
					w->next };
	w->next++;
	see_birth(w);
}

void lives_walk_skip(struct lives_walk *w, uint32_t life)
{
	w->next = life;
	see_birth(w);
}

void lives_walk_first(struct lives_walk *w, const struct lives *l)
{
	*w = (struct lives_walk){ 0 };
	lives_first(&w->changes, l);
	see_birth(w);
	lives_walk_next(w);
}
