/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verify, don't unwind. A step from a frame to its caller is a function of the frame's state (ip,
 * sp, rbp), of the rule for ip, and of the words on the stack that the rule names: return address
 * and saved rbp. Each frame of the last walk is kept with its state, and those words as a list. rbp
 * is compared only where a step reads it.
 *
 * Why a shortened walk is exact: it begins at the true registers and steps by rules. When it comes
 * to a state equal to a kept one, the next step would read the same places by the same rule. If
 * they hold the same words, the result is the next kept state, and so on outward. No word is read
 * unless the state that leads to it was just found right, so nothing depends on what happened since
 * (returns, exceptions, longjmp, other stacks): a slot that was reused is never looked at, or holds
 * what the step would take from it anyway. Where the words differ, or the frame's end was itself
 * loaded from memory, the walk makes a step by the rule. Rules hold until an object is unloaded
 * (modules_unloads). Return addresses are never changed. The inner part that differs from the last
 * walk was mostly seen some events ago: repeat.h keeps such parts.
 *
 * Application threads, any lock held; loads only, from the memory an unwinder would read. Never
 * guesses: if one frame has no rule, there is no walk.
 */
#include "frames.h"

#include "modules.h"

#include <string.h>

static inline void list(struct frames *f, int count)
{
	struct words *l = &f->words;
	struct word *w = &l->words[l->until[l->listed]];

	if (OS_UNLIKELY(!l->listed)) {
		w = l->words;
		*w++ = (struct word){ &word_never, 1 };
		l->until[0] = 1;
	}
	for (int i = l->listed; i < count; i++) {
		w = list_frame(&f->walk.frames[i], w);
		l->until[i + 1] = (uint16_t)(w - l->words);
	}
	if (l->listed < count)
		l->listed = count;
}

/* Drops the words of frames from this one on: these are others, or were reached in another way. */
static void unlist(struct frames *f, int from)
{
	if (f->words.listed > from)
		f->words.listed = from;
}

static bool same(const struct frame *k, const struct frame *s)
{
	return k->ip == s->ip && k->sp == s->sp && (k->bp == s->bp || !bp_counts(k));
}

/* Checks words outward from frame `from`, which is right. Returns the last right frame; 0 = all. */
static NOT_SANITIZED int verified(const struct words *l, int from)
{
	const struct word *w = &l->words[l->until[from] - 1];

#pragma GCC unroll 4
	for (; *w->at == w->is; w--)
		;
	if (w == l->words)
		return 0;
	while (&l->words[l->until[from - 1]] > w)
		from--;
	return from;
}

/* Whether words hold from `from` outward to `within`, beyond which frames cannot change. */
static NOT_SANITIZED bool holds_within(const struct words *l, int from, uintptr_t within)
{
	for (const struct word *w = &l->words[l->until[from] - 1]; *w->at == w->is; w--)
		if ((uintptr_t)w->at > within)
			return true;
	return false;
}

/* Updates rbp of the frames from `from` outward to `to`, which are right. */
static NOT_SANITIZED void refresh(struct walk *w, int from, int to)
{
	for (int i = from - 1; i >= to; i--) {
		struct frame *k = &w->frames[i];

		k->bp = bp_at(k) == &steps_not_saved ? k[1].bp : *bp_at(k);
	}
}

/* Whether the rule of ip is that of an outermost frame. */
static inline bool is_outermost(struct frames *f, uintptr_t ip)
{
	if (OS_LIKELY(f->outermost == ip))
		return true;
	if (rule_for(&f->steps, ip).how != CFI_OUTERMOST)
		return false;
	f->outermost = ip;
	return true;
}

/*
 * Checks frames outward from the one at `from`, known to be right. Returns the index of the last
 * right one; 0 with REACHED_END: all are right. Else *s is the frame after that, by its rule,
 * unless there is none.
 */
static int verify(struct frames *f, int from, struct frame *s, enum outcome *outcome)
{
	struct walk *w = &f->walk;

	list(f, from);
	if (f->within && holds_within(&f->words, from, f->within)) {
		*outcome = REACHED_END;
		return 0;
	}
	for (;;) {
		int k = verified(&f->words, from);

		if (k == 0 && is_outermost(f, w->frames[0].ip)) {
			*outcome = REACHED_END;
			return 0;
		}
		refresh(w, from, k);
		*s = w->frames[k];
		*outcome = step(&f->steps, s);
		if (*outcome != WENT || k == 0 || !same(&w->frames[k - 1], s))
			return k;
		from = k - 1;
		w->frames[from].bp = s->bp;
	}
}

/* ---- walks ---- */

/* Right frames whose callers changed are added to the new ones. */
static bool take_over(struct frames *f, int *fresh, const struct walk *w, int from, int to)
{
	for (int i = from; i >= to; i--) {
		if (*fresh == FRAMES_MOST)
			return false;
		f->fresh[(*fresh)++] = w->frames[i];
	}
	return true;
}

static struct walk *finish(struct frames *f, struct walk *w, int fresh, int kept)
{
	if (kept + fresh > FRAMES_MOST)
		return NULL;
	unlist(f, kept);
	for (int i = 0; i < fresh; i++) {
		struct frame *k = &w->frames[kept + i];

		*k = f->fresh[fresh - 1 - i];
		set_counts(k,
			   rule_counts(rule_for(&f->steps, k->ip), kept + i && bp_counts(k - 1)));
	}
	w->kept = kept;
	w->count = kept + fresh;
	w->verifiable = true;
	w->joined = NULL;
	w->node = 0;
	return w;
}

static struct walk *walk_from(struct frames *f, struct walk *w, struct frame s)
{
	int fresh = 0, at = w->verifiable ? w->count - 1 : -1, right;
	enum outcome outcome = WENT;

	while (outcome == WENT) {
		while (at >= 0 && w->frames[at].sp < s.sp)
			at--;
		if (at >= 0 && same(&w->frames[at], &s)) {
			set_counts(&s, bp_counts(&w->frames[at]));
			w->frames[at] = s; /* it is reached from another frame now */
			unlist(f, at);
			right = verify(f, at, &s, &outcome);
			if (right == 0 && outcome == REACHED_END)
				return finish(f, w, fresh, at + 1);
			if (!take_over(f, &fresh, w, at, right))
				return NULL;
			at = right - 1;
			continue;
		}
		if (fresh == FRAMES_MOST)
			return NULL;
		f->fresh[fresh++] = s;
		outcome = step(&f->steps, &s);
	}
	return outcome == REACHED_END ? finish(f, w, fresh, 0) : NULL;
}

static void copy_inner(struct walk *w, const struct repeat *p)
{
	memcpy(&w->frames[p->outer - 1], repeat_frames(p), (p->count + 1u) * sizeof(w->frames[0]));
	memcpy(&w->nodes[p->outer], repeat_nodes(p), p->count * sizeof(w->nodes[0]));
}

/* Completes the last walk with its inner part. */
static void fetch_inner(struct frames *f)
{
	if (!f->inner)
		return;
	copy_inner(&f->walk, f->inner);
	unlist(f, f->inner->outer - 1);
	f->inner = NULL;
}

void frames_copy(const struct frames *f, struct walk *out)
{
	*out = f->walk;
	if (f->inner)
		copy_inner(out, f->inner);
}

/* Forgets everything after an unload. False while one is in progress: nothing is used then. */
static bool is_current(struct frames *f)
{
	bool now;
	uint64_t unloads = modules_unloads(&now);

	if (OS_LIKELY(f->unloads == unloads))
		return !now;
	f->walk.verifiable = false;
	f->inner = NULL;
	unlist(f, 0);
	memset(&f->steps, 0, sizeof(f->steps));
	f->outermost = 0;
	repeat_forget(&f->repeats);
	f->unloads = unloads;
	return !now;
}

static bool joins(const struct repeat *p, const struct frame *k)
{
	return k->ip == p->join.ip && k->sp == p->join.sp && bp_counts(k) == bp_counts(&p->join) &&
	       (k->bp == p->join.bp || !bp_counts(k));
}

/*
 * A walk whose inner part is a kept one; the rest is verified here. NULL = it is not the same, and
 * nothing was changed but what is right in any case.
 */
static struct walk *walk_again(struct frames *f, const struct frame *here)
{
	struct repeat *p = repeat_find(&f->repeats, &f->steps, here);
	enum outcome outcome;
	struct frame s;
	struct walk *w = &f->walk;
	int join;

	if (!p || !w->verifiable)
		return NULL;
	if (f->inner && p->outer > f->inner->outer)
		fetch_inner(f);
	join = p->outer - 1;
	if (w->count <= join || w->nodes[join] != p->base || !joins(p, &w->frames[join]) ||
	    verify(f, join, &s, &outcome) != 0 || outcome != REACHED_END)
		return NULL;
	unlist(f, join);
	f->inner = p;
	w->count = w->kept = p->outer + p->count;
	w->node = p->node;
	w->joined = &p->joined;
	repeat_expect(&f->repeats);
	return w;
}

/* Keeps the last walk as a repeat. Its nodes are known by now, unless one could not be defined. */
static void keep_taken(struct frames *f)
{
	if (!f->taken)
		return;
	if (f->walk.count == f->taken)
		repeat_keep(&f->repeats, &f->steps, &f->walk, f->own, f->owns);
	else
		f->repeats.last = f->repeats.before = 0;
	f->taken = 0;
}

static struct walk *walk_anew(struct frames *f, struct frame s, uintptr_t own_start,
			      uintptr_t own_end)
{
	struct walk *w;

	fetch_inner(f);
	f->walked++;
	f->owns = 0;
	f->own[0] = s;
	while (s.ip >= own_start && s.ip < own_end) {
		if (f->owns == REPEAT_OWN)
			return NULL;
		f->own[f->owns++] = s;
		if (step(&f->steps, &s) != WENT)
			return NULL;
	}
	w = walk_from(f, &f->walk, s);
	f->walk.verifiable = w != NULL; /* an incomplete walk is none */
	f->taken = w ? w->count : 0;
	return w;
}

__attribute__((noinline)) NOT_SANITIZED struct walk *
frames_walk(struct frames *f, const struct binding *binding, const uintptr_t *from,
	    uintptr_t own_start, uintptr_t own_end)
{
#if defined(__x86_64__)
	const uintptr_t *at = from ? from : __builtin_frame_address(0);
	const struct frame here = { at[1], (uintptr_t)(at + 2), at[0], 0 };
	bool inside = here.sp < binding->at; /* false on another stack, at higher addresses */
	struct walk *w;

	keep_taken(f);
	f->within = inside && f->binding == binding->number ? binding->at : 0;
	f->binding = 0;
	if (!is_current(f))
		return NULL;
	w = walk_again(f, &here);
	w = w ? w : walk_anew(f, here, own_start, own_end);
	f->binding = w && inside ? binding->number : 0;
	return w;
#else
	(void)f, (void)binding, (void)from, (void)own_start, (void)own_end;
	return NULL;
#endif
}
