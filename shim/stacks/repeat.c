/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the inner part of a walk among those of earlier walks and verifies it. The candidate is a
 * guess, by the walk before and the stack pointer. The check is not: from the state at the
 * beginning outward, each kept frame's words are compared with the stack, as in frames.c, so a
 * wrong guess costs only time.
 */
#include "repeat.h"

#include "frames.h"

#include <string.h>

const uintptr_t word_never;

static uint16_t bits_of(uintptr_t sp)
{
	return (uint16_t)(sp >> 3);
}

static inline void went_to(struct repeats *r, uint16_t number)
{
	r->before = r->last;
	r->last = number;
}

size_t repeat_bytes(const struct repeat *p)
{
	size_t nodes = p->count * sizeof(uint32_t);
	size_t bytes = sizeof(*p) + p->listed * sizeof(p->words[0]) +
		       p->all * sizeof(struct frame) + nodes;

	return (bytes + 63) & ~(size_t)63; /* each begins on a cache line */
}

/* NULL: it was dropped. */
static inline struct repeat *repeat_at(const struct repeats *r, uint16_t number)
{
	uint32_t offset = number ? r->offsets[number - 1u] : 0;

	return offset ? (struct repeat *)((char *)r->room + offset - 1) : NULL;
}

static struct repeat_link *links_of(struct repeats *r)
{
	uint32_t h = ((uint32_t)r->before << 16 | r->last) * 0x9e3779b1u;

	_Static_assert(REPEAT_LINKS == 1u << 10, "ten bits of the hash");
	return r->links[h >> 22];
}

/* The links that are kept with the last walk, which is in the cache; the table of all links mostly
 * is not. NULL: that walk was not kept. */
static inline struct repeat_link *near_links(const struct repeats *r)
{
	struct repeat *last = repeat_at(r, r->last);

	return last ? last->links : NULL;
}

/* Puts the link that was right last before the others. */
static void put_first(struct repeat_link *links, struct repeat_link l)
{
	if (!links)
		return;
	memmove(&links[1], &links[0], (REPEAT_WAYS - 1) * sizeof(links[0]));
	links[0] = l;
}

static inline bool bp_fits(const struct frame *k, uintptr_t bp)
{
	return !bp_counts(k) || k->bp == bp;
}

/* Makes the step to k by its rule, because k's place was itself loaded from memory. */
static bool stepped(struct steps *steps, const struct frame *k, uintptr_t *bp)
{
	struct frame s = k[1];

	s.bp = *bp;
	if (step(steps, &s) != WENT || s.ip != k->ip || s.sp != k->sp)
		return false;
	*bp = s.bp;
	return true;
}

/* holds() for a repeat with such a frame. */
static __attribute__((noinline)) NOT_SANITIZED bool
holds_by_steps(struct steps *steps, const struct repeat *p, uintptr_t bp)
{
	const struct frame *first = repeat_frames(p), *k = &first[p->all - 1];

	while (--k >= first) {
		if (OS_LIKELY(bp_at(k) != NULL)) {
			if (load_word(k->sp - 8) != k->ip)
				return false;
			if (bp_at(k) != &steps_not_saved)
				bp = *bp_at(k);
		} else if (!stepped(steps, k, &bp)) {
			return false;
		}
		if (!bp_fits(k, bp))
			return false;
	}
	return true;
}

static inline NOT_SANITIZED bool holds(struct steps *steps, const struct repeat *p,
				       const struct frame *here)
{
	const struct word *w = p->words;

	if (p->here.ip != here->ip || p->here.sp != here->sp || !bp_fits(&p->here, here->bp))
		return false;
	if (OS_UNLIKELY(!p->listed))
		return holds_by_steps(steps, p, here->bp);
#pragma GCC unroll 4
	for (; *w->at == w->is; w++)
		;
	return w->at == &word_never;
}

static inline struct repeat *find_among(const struct repeats *r, const struct repeat_link *links,
					struct steps *steps, const struct frame *here,
					struct repeat_link *found)
{
	for (unsigned i = 0; i < REPEAT_WAYS; i++) {
		struct repeat *p = NULL;

		if (links[i].sp == bits_of(here->sp) && links[i].before == r->before)
			p = repeat_at(r, links[i].next);
		if (!p || !holds(steps, p, here))
			continue;
		*found = links[i];
		return p;
	}
	return NULL;
}

struct repeat *repeat_find(struct repeats *r, struct steps *steps, const struct frame *here)
{
	struct repeat_link *near = near_links(r), found;
	struct repeat *p = near ? find_among(r, near, steps, here, &found) : NULL;

	if (OS_UNLIKELY(!p)) {
		p = find_among(r, links_of(r), steps, here, &found);
		if (!p)
			return NULL;
		put_first(near, found);
	}
	went_to(r, found.next);
	return p;
}

void repeat_expect(const struct repeats *r)
{
	const struct repeat_link *near = near_links(r);
	const char *p = NULL;

	for (unsigned i = 0; near && !p && i < REPEAT_WAYS; i++)
		if (near[i].before == r->before)
			p = (const char *)repeat_at(r, near[i].next);
	if (!p)
		return;
#pragma GCC unroll 8
	for (unsigned i = 0; i < REPEAT_AHEAD; i += 64)
		__builtin_prefetch(p + i);
}

/* ---- keeping ---- */

/* Fills `frames` with the walk's new frames, and inside them our own (innermost first in own). */
static void fill(struct frame *frames, struct steps *steps, const struct walk *w,
		 const struct frame *own, unsigned owns)
{
	unsigned count = (unsigned)(w->count - w->kept);
	struct frame *k = &frames[count];

	memcpy(frames, &w->frames[w->kept - 1], (count + 1u) * sizeof(frames[0]));
	while (owns--) {
		k[1] = own[owns];
		set_counts(&k[1], rule_counts(rule_for(steps, k[1].ip), bp_counts(k)));
		k++;
	}
}

/* Lists the words on which the frames depend, innermost first. Returns their number, including the
 * one at which a comparison ends; 0 = words alone do not suffice. */
static uint16_t list(struct word *words, const struct frame *frames, unsigned all)
{
	struct word *w = words;

	for (const struct frame *k = &frames[all - 1]; k-- > frames;) {
		if (!bp_at(k))
			return 0;
		w = list_frame(k, w);
	}
	*w++ = (struct word){ &word_never, 1 };
	return (uint16_t)(w - words);
}

static bool equal(const struct repeat *a, const struct repeat *b)
{
	if (a->base != b->base || a->outer != b->outer || a->count != b->count || a->all != b->all)
		return false;
	for (unsigned i = 0; i < a->all; i++) {
		const struct frame *k = &repeat_frames(a)[i], *l = &repeat_frames(b)[i];

		if (k->ip != l->ip || k->sp != l->sp || k->bp_from != l->bp_from ||
		    !bp_fits(k, l->bp))
			return false;
	}
	return true;
}

static uint16_t *content_of(struct repeats *r, const struct repeat *p)
{
	uint64_t h = p->base;

	_Static_assert(REPEAT_CONTENT == 1u << 10, "ten bits of the hash");
	for (unsigned i = 0; i < p->all; i++)
		h = (h ^ repeat_frames(p)[i].ip ^ repeat_frames(p)[i].sp << 20) *
		    0x9e3779b97f4a7c15ULL;
	return &r->by_content[h >> 54];
}

static void drop_oldest(struct repeats *r)
{
	r->offsets[r->oldest] = 0;
	r->oldest = (uint16_t)((r->oldest + 1) % REPEATS);
}

/* Room for one more, in place r->next; drops those that lie there. */
static struct repeat *make_room(struct repeats *r, size_t bytes)
{
	if (r->used + bytes > REPEAT_ROOM) {
		/* those after the last one are older than those at the start */
		while (r->oldest != r->next && r->offsets[r->oldest] > r->used)
			drop_oldest(r);
		r->used = 0;
	}
	while (r->oldest != r->next) {
		uint32_t start = r->offsets[r->oldest] - 1;
		const struct repeat *p = repeat_at(r, (uint16_t)(r->oldest + 1));

		if (start >= r->used + bytes || start + repeat_bytes(p) <= r->used)
			break;
		drop_oldest(r);
	}
	if ((r->next + 1u) % REPEATS == r->oldest)
		drop_oldest(r);
	return (struct repeat *)((char *)r->room + r->used);
}

/* The number of p, which is in the room for the next one; if an equal one exists, its number. */
static uint16_t settle_number(struct repeats *r, struct repeat *p)
{
	uint16_t *seen = content_of(r, p);
	const struct repeat *other = repeat_at(r, *seen);

	if (other && equal(other, p))
		return *seen;
	r->offsets[r->next] = r->used + 1;
	r->used += (uint32_t)repeat_bytes(p);
	*seen = (uint16_t)(r->next + 1u);
	r->next = (uint16_t)((r->next + 1u) % REPEATS);
	return *seen;
}

void repeat_keep(struct repeats *r, struct steps *steps, const struct walk *w,
		 const struct frame *own, unsigned owns)
{
	struct repeat head = {
		.base = w->kept ? w->nodes[w->kept - 1] : 0,
		.node = w->count ? w->nodes[w->count - 1] : 0,
		.outer = (uint16_t)w->kept,
		.count = (uint16_t)(w->count - w->kept),
		.all = (uint16_t)(1u + (unsigned)(w->count - w->kept) + owns),
	};
	struct frame frames[REPEAT_MOST];
	struct word words[2 * REPEAT_MOST + 1];
	struct repeat_link link;
	struct repeat *p;
	uint16_t number;

	if (!w->kept || head.all > REPEAT_MOST) {
		went_to(r, 0);
		return;
	}
	fill(frames, steps, w, own, owns);
	head.join = frames[0];
	head.here = frames[head.all - 1u];
	head.listed = list(words, frames, head.all);
	p = make_room(r, repeat_bytes(&head));
	*p = head;
	memcpy(p->words, words, head.listed * sizeof(words[0]));
	memcpy(repeat_frames(p), frames, head.all * sizeof(frames[0]));
	memcpy(repeat_nodes(p), &w->nodes[w->kept], head.count * sizeof(w->nodes[0]));
	number = settle_number(r, p);
	link = (struct repeat_link){ r->before, bits_of(own[0].sp), number };
	put_first(near_links(r), link);
	put_first(links_of(r), link);
	went_to(r, number);
}

void repeat_forget(struct repeats *r)
{
	memset(r->links, 0, sizeof(r->links));
	memset(r->by_content, 0, sizeof(r->by_content));
	memset(r->offsets, 0, sizeof(r->offsets));
	r->last = r->before = r->oldest = r->next = 0;
	r->used = 0;
}
