/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verify, don't unwind. A step from a frame to its caller is a function of the frame's state (ip,
 * sp, rbp), of the rule for ip, and of the words on the stack that the rule names: return address
 * and saved rbp. Each frame of the last walk is kept with its state and the places of those words.
 *
 * Why a shortened walk is exact: it begins at the true registers and steps by rules. When it comes
 * to a state equal to one that is kept, the next step would read the same places by the same rule;
 * if they hold the same words, its outcome is the next kept state, and so on outward. No word is
 * read unless the state that leads to it was just found right, so nothing depends on what happened
 * since (returns, exceptions, longjmp, other stacks): a slot that was used again for something else
 * is never looked at, or holds what the step would take from it anyway. A place where the words
 * differ, or whose end was itself loaded from memory, is stepped over by its rule. Rules hold until
 * an object is unloaded (modules_unloads). Return addresses are never changed.
 *
 * Application threads, any lock held; loads only, from the memory an unwinder would read. Never
 * guesses: one frame without a rule, and the walk is not taken.
 */
#include "frames.h"

#include "../base/forkgate.h"
#include "modules.h"
#include "../base/os.h"

#include <string.h>

#define FRAME_MOST    (64u << 20) /* bytes */
#define NOT_SANITIZED __attribute__((no_sanitize("address", "thread", "undefined")))

static inline NOT_SANITIZED uintptr_t load(uintptr_t address)
{
	return *(const uintptr_t *)address;
}

/* ---- rules ---- */

/* Room in a full set is made by the rule that has been there longest. */
static struct learned *keep_place(struct learned *set)
{
	for (unsigned i = 0; i < FRAMES_WAYS; i++)
		if (!set[i].ip)
			return &set[i];
	memmove(&set[0], &set[1], (FRAMES_WAYS - 1) * sizeof(set[0]));
	return &set[FRAMES_WAYS - 1];
}

/* Of code outside of all objects nothing is kept: an object may be loaded there. */
static __attribute__((noinline)) struct cfi_rule learn(struct learned *set, uintptr_t ip)
{
	const struct cfi_rule unknown = { .how = CFI_UNKNOWN };
	const struct cfi_table *t;
	struct cfi_rule rule;

	forkgate_enter();
	t = modules_table(ip);
	rule = t ? cfi_rule(t, ip - 1) : unknown;
	forkgate_leave();
	if (t)
		*keep_place(set) = (struct learned){ ip, rule };
	return rule;
}

static inline struct cfi_rule rule_for(struct frames *f, uintptr_t ip)
{
	struct learned *set = f->rules[(ip * 0x9e3779b97f4a7c15ULL) >> 53];

	_Static_assert(FRAMES_SETS == 1u << (64 - 53), "the shift makes the number of a set");
	for (unsigned i = 0; i < FRAMES_WAYS; i++)
		if (OS_LIKELY(set[i].ip == ip))
			return set[i].rule;
	return learn(set, ip);
}

/* ---- steps ---- */

/* Stands for a frame's own member, until the frame has its place. */
static const uintptr_t not_saved;

enum outcome { WENT, REACHED_END, LOST };

/* Where information is wrong, a register holds anything: only what may be stack is read. */
static inline bool near(uintptr_t sp, uintptr_t end)
{
	return end > sp && end - sp < FRAME_MOST && !(end & 7);
}

/* To the caller of s, in place. */
static inline NOT_SANITIZED enum outcome step(struct frames *f, struct frame *s)
{
	struct cfi_rule r = rule_for(f, s->ip);
	uintptr_t end = (r.how == CFI_SP ? s->sp : s->bp) + (uintptr_t)(intptr_t)r.end;
	const uintptr_t *bp_at;

	if (OS_UNLIKELY(r.how == CFI_OUTERMOST))
		return REACHED_END;
	if (OS_UNLIKELY(r.how == CFI_UNKNOWN))
		return LOST;
	bp_at = (const uintptr_t *)((r.how == CFI_BP_LOAD ? s->bp : end) +
				    (uintptr_t)(intptr_t)r.bp);
	if (OS_UNLIKELY(r.how == CFI_BP_LOAD)) {
		if (!near(s->sp, end) || !near(s->sp, (uintptr_t)bp_at))
			return LOST;
		end = load(end);
	}
	if (OS_UNLIKELY(!near(s->sp, end)))
		return LOST;
	if (r.saved)
		s->bp = *bp_at;
	s->bp_at = r.how == CFI_BP_LOAD ? NULL : r.saved ? bp_at : &not_saved;
	s->sp = end;
	s->ip = load(end - 8);
	return s->ip ? WENT : REACHED_END;
}

static inline bool same(const struct frame *a, const struct frame *b)
{
	return a->ip == b->ip && a->sp == b->sp && a->bp == b->bp;
}

/* The words that made this frame, given that the one inside it is right. */
static inline NOT_SANITIZED bool holds(const struct frame *k)
{
	return k->bp_at && load(k->sp - 8) == k->ip && *k->bp_at == k->bp;
}

/*
 * From the frame at `from`, known to be right, outward. Returns how far frames are right: 0 = all,
 * and the outermost is still that. *s is the frame behind the last right one.
 */
static int verify(struct frames *f, const struct walk *w, int from, struct frame *s,
		  enum outcome *outcome)
{
	for (int k = from;; k--) {
		while (k > 0 && holds(&w->frames[k - 1]))
			k--;
		*s = w->frames[k];
		*outcome = step(f, s);
		if (*outcome != WENT || k == 0 || !same(s, &w->frames[k - 1]))
			return k;
	}
}

/* ---- walks ---- */

/* Frames that are right but whose outer part is not go in again, as new ones. */
static bool take_over(struct frames *f, int *fresh, const struct walk *w, int from, int to)
{
	for (int i = from; i >= to; i--) {
		if (*fresh == FRAMES_MOST)
			return false;
		f->fresh[*fresh] = w->frames[i];
		if (w->frames[i].bp_at == &w->frames[i].bp)
			f->fresh[*fresh].bp_at = &not_saved;
		(*fresh)++;
	}
	return true;
}

static void settle(struct frame *k)
{
	if (k->bp_at == &not_saved)
		k->bp_at = &k->bp;
}

static struct walk *finish(struct frames *f, struct walk *w, int fresh, int kept)
{
	if (kept + fresh > FRAMES_MOST)
		return NULL;
	for (int i = 0; i < fresh; i++) {
		w->frames[kept + i] = f->fresh[fresh - 1 - i];
		settle(&w->frames[kept + i]);
	}
	w->kept = kept;
	w->count = kept + fresh;
	w->verifiable = true;
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
			w->frames[at].bp_at = s.bp_at; /* it was reached from another one */
			settle(&w->frames[at]);
			right = verify(f, w, at, &s, &outcome);
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
		outcome = step(f, &s);
	}
	return outcome == REACHED_END ? finish(f, w, fresh, 0) : NULL;
}

/* Nothing may be learned or believed while an object is being unloaded. */
static bool is_current(struct frames *f)
{
	bool now;
	uint64_t unloads = modules_unloads(&now);

	if (OS_LIKELY(f->unloads == unloads))
		return !now;
	for (unsigned i = 0; i < FRAMES_MEMORIES; i++)
		f->memories[i].count = 0;
	memset(f->rules, 0, sizeof(f->rules));
	f->unloads = unloads;
	return !now;
}

/* Which earlier walk to compare with: the last that began in the same place, as a hook for
 * allocations and one for frees are called from different ones. */
static struct walk *memory_for(struct frames *f, uintptr_t began)
{
	struct walk *w;

	for (unsigned i = 0; i < FRAMES_MEMORIES; i++)
		if (f->memories[i].began == began)
			return &f->memories[i];
	w = &f->memories[f->next_memory++ % FRAMES_MEMORIES];
	w->began = began;
	return w;
}

__attribute__((noinline)) NOT_SANITIZED struct walk *
frames_walk(struct frames *f, uintptr_t own_start, uintptr_t own_end)
{
#if defined(__x86_64__)
	const uintptr_t *here = __builtin_frame_address(0);
	struct frame s = { here[1], (uintptr_t)(here + 2), here[0], NULL };

	if (!is_current(f))
		return NULL;
	while (s.ip >= own_start && s.ip < own_end)
		if (step(f, &s) != WENT)
			return NULL;
	return walk_from(f, memory_for(f, s.ip), s);
#else
	(void)f, (void)own_start, (void)own_end;
	return NULL;
#endif
}
