/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the inner part of a walk among those of earlier walks and verifies it. Which one it may be
 * is a guess by the walk before and the place where it begins; whether it is, is not: from the
 * state at the beginning outward each kept frame's words are compared with the stack, as in
 * frames.c, so a wrong guess costs time and nothing else.
 *
 * Application threads, any lock held; loads only, and the thread's own memory.
 */
#include "repeat.h"

#include "frames.h"

#include <string.h>

static const struct repeat_link *links_of(const struct repeats *r)
{
	uint32_t h = ((uint32_t)r->before << 16 | r->last) * 0x9e3779b1u;

	_Static_assert(REPEAT_LINKS == 1u << 10, "ten bits of the hash");
	return r->links[h >> 22];
}

static uint16_t bits_of(uintptr_t sp)
{
	return (uint16_t)(sp >> 3);
}

static inline void went_to(struct repeats *r, uint16_t number)
{
	r->before = r->last;
	r->last = number;
}

static size_t bytes_of(const struct repeat *p)
{
	size_t nodes = ((size_t)p->count * sizeof(uint32_t) + 7) & ~(size_t)7;

	return sizeof(*p) + p->all * sizeof(p->frames[0]) + nodes;
}

/* NULL: it had to make room. */
static inline struct repeat *repeat_at(const struct repeats *r, uint16_t number)
{
	uint32_t offset = number ? r->offsets[number - 1u] : 0;

	return offset ? (struct repeat *)((char *)r->room + offset - 1) : NULL;
}

static inline bool bp_fits(const struct frame *k, uintptr_t bp)
{
	return !bp_counts(k) || k->bp == bp;
}

/* A frame whose place was itself loaded from memory is stepped to by its rule. */
static __attribute__((noinline)) bool stepped(struct steps *steps, const struct frame *k,
					      uintptr_t *bp)
{
	struct frame s = k[1];

	s.bp = *bp;
	if (step(steps, &s) != WENT || s.ip != k->ip || s.sp != k->sp)
		return false;
	*bp = s.bp;
	return true;
}

/* *bp: rbp at `here`, then of frames[0] as it is now. */
static NOT_SANITIZED bool is_right(struct steps *steps, const struct repeat *p,
				   const struct frame *here, uintptr_t *bp)
{
	const struct frame *k = &p->frames[p->all - 1];

	if (k->ip != here->ip || k->sp != here->sp || !bp_fits(k, *bp))
		return false;
	while (--k >= p->frames) {
		if (OS_LIKELY(bp_at(k) != NULL)) {
			if (load_word(k->sp - 8) != k->ip)
				return false;
			if (bp_at(k) != &steps_not_saved)
				*bp = *bp_at(k);
		} else if (!stepped(steps, k, bp)) {
			return false;
		}
		if (!bp_fits(k, *bp))
			return false;
	}
	return true;
}

struct repeat *repeat_find(struct repeats *r, struct steps *steps, const struct frame *here,
			   uintptr_t *bp)
{
	const struct repeat_link *links = links_of(r);

	for (unsigned i = 0; i < REPEAT_WAYS; i++) {
		struct repeat *p = NULL;

		if (links[i].sp == bits_of(here->sp))
			p = repeat_at(r, links[i].next);
		*bp = here->bp;
		if (!p || !is_right(steps, p, here, bp))
			continue;
		went_to(r, links[i].next);
		return p;
	}
	return NULL;
}

void repeat_expect(const struct repeats *r)
{
	const char *p = (const char *)repeat_at(r, links_of(r)[0].next);

	if (!p)
		return;
#pragma GCC unroll 8
	for (unsigned i = 0; i < REPEAT_AHEAD; i += 64)
		__builtin_prefetch(p + i);
}

bool repeat_joins(const struct repeat *p, const struct frame *k)
{
	return k->ip == p->frames[0].ip && k->sp == p->frames[0].sp &&
	       bp_fits(&p->frames[0], k->bp);
}

/* ---- keeping ---- */

/* Our own frames lie inside the walk's, innermost first. */
static void fill(struct repeat *p, struct steps *steps, const struct walk *w,
		 const struct frame *own, unsigned owns)
{
	struct frame *k = &p->frames[p->count];

	memcpy(p->frames, &w->frames[w->kept - 1], (p->count + 1u) * sizeof(p->frames[0]));
	while (owns--) {
		k[1] = own[owns];
		set_counts(&k[1], rule_counts(rule_for(steps, k[1].ip), bp_counts(k)));
		k++;
	}
	memcpy(&p->frames[p->all], &w->nodes[w->kept], p->count * sizeof(w->nodes[0]));
}

static bool equal(const struct repeat *a, const struct repeat *b)
{
	if (a->base != b->base || a->outer != b->outer || a->count != b->count || a->all != b->all)
		return false;
	for (unsigned i = 0; i < a->all; i++) {
		const struct frame *k = &a->frames[i], *l = &b->frames[i];

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
		h = (h ^ p->frames[i].ip ^ p->frames[i].sp << 20) * 0x9e3779b97f4a7c15ULL;
	return &r->by_content[h >> 54];
}

static void drop_oldest(struct repeats *r)
{
	r->offsets[r->oldest] = 0;
	r->oldest = (uint16_t)((r->oldest + 1) % REPEATS);
}

/* Room for one more, in place r->next; those that lie there go. */
static struct repeat *make_room(struct repeats *r, size_t bytes)
{
	if (r->used + bytes > REPEAT_ROOM) {
		/* what lies behind the last one is older than what lies at the start */
		while (r->oldest != r->next && r->offsets[r->oldest] > r->used)
			drop_oldest(r);
		r->used = 0;
	}
	while (r->oldest != r->next) {
		uint32_t start = r->offsets[r->oldest] - 1;
		const struct repeat *p = repeat_at(r, (uint16_t)(r->oldest + 1));

		if (start >= r->used + bytes || start + bytes_of(p) <= r->used)
			break;
		drop_oldest(r);
	}
	if ((r->next + 1u) % REPEATS == r->oldest)
		drop_oldest(r);
	return (struct repeat *)((char *)r->room + r->used);
}

/* The number of p, which lies where the next one goes, unless it is there already. */
static uint16_t settle_number(struct repeats *r, struct repeat *p)
{
	uint16_t *seen = content_of(r, p);
	const struct repeat *other = repeat_at(r, *seen);

	if (other && equal(other, p))
		return *seen;
	r->offsets[r->next] = r->used + 1;
	r->used += (uint32_t)bytes_of(p);
	*seen = (uint16_t)(r->next + 1u);
	r->next = (uint16_t)((r->next + 1u) % REPEATS);
	return *seen;
}

/* The one that was right last stands first. */
static void put_link(struct repeat_link *links, uintptr_t sp, uint16_t next)
{
	memmove(&links[1], &links[0], (REPEAT_WAYS - 1) * sizeof(links[0]));
	links[0] = (struct repeat_link){ bits_of(sp), next };
}

void repeat_keep(struct repeats *r, struct steps *steps, const struct walk *w,
		 const struct frame *own, unsigned owns)
{
	struct repeat head = {
		.base = w->kept ? w->nodes[w->kept - 1] : 0,
		.outer = (uint16_t)w->kept,
		.count = (uint16_t)(w->count - w->kept),
		.all = (uint16_t)(1u + (unsigned)(w->count - w->kept) + owns),
	};
	struct repeat *p;
	uint16_t number;

	if (!w->kept || head.all > REPEAT_MOST) {
		went_to(r, 0);
		return;
	}
	p = make_room(r, bytes_of(&head));
	*p = head;
	fill(p, steps, w, own, owns);
	number = settle_number(r, p);
	put_link((struct repeat_link *)links_of(r), own[0].sp, number);
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
