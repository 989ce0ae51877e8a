/* SPDX-License-Identifier: Apache-2.0 */
#include "plan.h"

#define SANE (INT64_MAX / 4) /* bytes; sizes in a damaged file may be anything */

void plan_add(struct life_plan *p, struct plan_change change)
{
	*need_item(p->items, p->count, p->room) = change;
}

void plan_with(struct life_plan *p, uint32_t life, uint64_t from, uint64_t until, uint64_t bytes)
{
	if (from >= until || !bytes)
		return;
	plan_add(p, (struct plan_change){ from, (int64_t)bytes, life });
	if (until != PLAN_END)
		plan_add(p, (struct plan_change){ until, -(int64_t)bytes, life });
}

void plan_without(struct life_plan *p, uint32_t life, uint64_t from, uint64_t until, uint64_t bytes)
{
	plan_with(p, life, from, until, -bytes);
}

int64_t plan_less(const struct life_plan *p, uint64_t seq)
{
	int64_t less = 0;

	for (size_t i = 0; i < p->count; i++)
		less -= p->items[i].seq <= seq ? p->items[i].bytes : 0;
	return less;
}

void plan_free(struct life_plan *p)
{
	free(p->items);
	*p = (struct life_plan){ 0 };
}

/* Sorts by event: by the lowest byte of its number, then by the next one. */
static void sort_changes(struct life_plan *p)
{
	struct plan_change *to = need_new((p->count + 1) * sizeof(*to)), *from = p->items;
	uint64_t most = 0;

	for (size_t i = 0; i < p->count; i++)
		most |= from[i].seq;
	for (unsigned shift = 0; shift < 64 && most >> shift; shift += 8) {
		size_t at[257] = { 0 };

		for (size_t i = 0; i < p->count; i++)
			at[(from[i].seq >> shift & 255) + 1]++;
		for (unsigned byte = 0; byte < 256; byte++)
			at[byte + 1] += at[byte];
		for (size_t i = 0; i < p->count; i++)
			to[at[from[i].seq >> shift & 255]++] = from[i];
		p->items = to;
		to = from;
		from = p->items;
	}
	p->room = p->count;
	free(to);
}

uint64_t plan_most(struct life_plan *p)
{
	int64_t now = 0, most = 0;

	sort_changes(p);
	for (size_t i = 0; i < p->count; i++) {
		bool last = i + 1 == p->count || p->items[i + 1].seq != p->items[i].seq;

		now += p->items[i].bytes;
		most = last && now > most ? now : most;
	}
	return (uint64_t)most;
}

/* Where the peak is looked for. */
struct plan_window {
	uint64_t since, until;
	const struct repeats *leave;
};

static void measure(struct life_plan *p, uint64_t recorded, uint64_t seq,
		    const struct plan_window *in)
{
	uint64_t bytes = recorded + (uint64_t)p->now;

	if ((int64_t)bytes < 0 || bytes <= p->peak) /* at the end blocks go that no plan has */
		return;
	if (seq < in->since || seq >= in->until || repeats_at(in->leave, seq))
		return;
	p->peak = bytes;
	p->peak_seq = seq;
}

/* Changes up to the event; those of one event are one. */
static void follow(struct life_plan *p, uint64_t until, uint64_t recorded,
		   const struct plan_window *in)
{
	while (p->next < p->count && p->items[p->next].seq <= until) {
		uint64_t seq = p->items[p->next].seq;

		for (; p->next < p->count && p->items[p->next].seq == seq; p->next++)
			p->now += p->items[p->next].bytes;
		if (seq < until)
			measure(p, recorded, seq, in);
	}
}

/* Before event seq no plan changes, and with at most these recorded bytes none has a new peak. */
struct calm {
	uint64_t seq;
	int64_t bytes;
};

static struct calm calm_of(struct life_plan *const *plans, size_t count)
{
	struct calm c = { PLAN_END, SANE };

	for (size_t i = 0; i < count; i++) {
		const struct life_plan *p = plans[i];
		bool sane = p->now < SANE && p->now > -SANE && p->peak < SANE;
		int64_t room = sane ? (int64_t)p->peak - p->now : -1;

		c.bytes = room < c.bytes ? room : c.bytes;
		if (p->next < p->count && p->items[p->next].seq < c.seq)
			c.seq = p->items[p->next].seq;
	}
	return c;
}

void plans_run(struct life_plan **plans, size_t count, struct timeline *t,
	       const struct repeats *leave, uint64_t since, uint64_t until)
{
	const struct plan_window in = { since, until, leave };
	const struct lives *l = &t->model.lives;
	uint64_t now = 0, before, steps = 0;
	struct calm calm = { 0 };
	size_t row = 0;
	struct lives_walk w;

	for (size_t i = 0; i < count; i++)
		sort_changes(plans[i]);
	for (lives_walk_first(&w, l); w.change && w.now.seq < until;) {
		uint64_t seq = w.now.seq;

		/* no peak is looked for in these steps, and as much is alive after them */
		if (row < leave->count && seq >= leave->items[row].from) {
			lives_walk_jump(&w, leave->items[row++].until);
			continue;
		}
		if (steps++ % 65536 == 0)
			say_progress("computing savings", seq, t->model.events);
		before = now;
		chunks_rest(l->pool);
		for (; w.change && w.now.seq == seq; lives_walk_next(&w)) {
			struct lived x;

			if (w.change != CHANGE_BORN && w.change != CHANGE_DIED)
				continue;
			x = lives_read(l, w.now.life);
			if (x.born->device == t->device && series_counts(&t->model, x.born))
				now += w.change == CHANGE_BORN ? x.size : -x.size;
		}
		if (seq < since || (seq < calm.seq && now < SANE && (int64_t)now <= calm.bytes))
			continue;
		for (size_t i = 0; i < count; i++) {
			follow(plans[i], seq, before, &in);
			measure(plans[i], now, seq, &in);
		}
		calm = calm_of(plans, count);
	}
	for (size_t i = 0; i < count; i++)
		follow(plans[i], until, now, &in);
	say_progress_end();
}
