/* SPDX-License-Identifier: Apache-2.0
 *
 * First fit over numbered slots (slots.h). The arrays are mapped lazily, so that a table for a
 * terabyte costs only what is used of it.
 */
#include <string.h>
#include <sys/mman.h>
#include "slots.h"

#define WORDS(n) (((n) + 63) / 64)

static bool bit(const uint64_t *map, size_t i)
{
	return map[i / 64] >> (i % 64) & 1;
}

/* The first slot from `i` on whose bit equals `value`, at most `end`. */
static size_t next(const uint64_t *map, size_t i, size_t end, bool value)
{
	uint64_t flip = value ? 0 : ~(uint64_t)0;

	while (i < end) {
		uint64_t w = (map[i / 64] ^ flip) >> (i % 64);

		if (w) {
			i += __builtin_ctzll(w);
			return i < end ? i : end;
		}
		i = (i / 64 + 1) * 64;
	}
	return end;
}

static void mark(uint64_t *map, size_t from, size_t count, bool value)
{
	size_t end = from + count;

	while (from < end) {
		size_t low = from % 64, n = 64 - low < end - from ? 64 - low : end - from;
		uint64_t mask = (n == 64 ? ~(uint64_t)0 : ((uint64_t)1 << n) - 1) << low;

		if (value)
			map[from / 64] |= mask;
		else
			map[from / 64] &= ~mask;
		from += n;
	}
}

bool slots_init(struct slots *s, size_t n)
{
	size_t bits = WORDS(n) * sizeof(uint64_t);
	size_t total = 2 * bits + n * (sizeof(uint64_t) + sizeof(uint32_t));
	char *m = mmap(NULL, total, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (m == MAP_FAILED)
		return false;
	*s = (struct slots){ .n = n, .free = n, .mapped = total };
	s->taken = (uint64_t *)m;
	s->begins = s->taken + WORDS(n);
	s->bytes = s->begins + WORDS(n);
	s->count = (uint32_t *)(s->bytes + n);
	return true;
}

void slots_done(struct slots *s)
{
	if (s->mapped)
		munmap(s->taken, s->mapped);
	memset(s, 0, sizeof(*s));
}

static void slots_mark_taken(struct slots *s, size_t at, size_t count, uint64_t bytes)
{
	mark(s->taken, at, count, true);
	mark(s->begins, at, 1, true);
	s->bytes[at] = bytes;
	s->count[at] = (uint32_t)count;
	s->free -= count;
	if (at <= s->hint)
		s->hint = next(s->taken, s->hint, s->n, false);
}

size_t slots_take(struct slots *s, size_t count, size_t align, uint64_t bytes)
{
	size_t at = s->hint;

	if (!count || count > s->free)
		return SLOTS_NONE;
	while (at + count <= s->n) {
		size_t end;

		at = next(s->taken, at, s->n, false);
		if (align > 1)
			at = (at + align - 1) / align * align;
		if (at + count > s->n)
			break;
		end = next(s->taken, at, at + count, true);
		if (end == at + count) {
			slots_mark_taken(s, at, count, bytes);
			return at;
		}
		at = end + 1;
	}
	return SLOTS_NONE;
}

bool slots_take_at(struct slots *s, size_t at, size_t count, uint64_t bytes)
{
	if (!count || at >= s->n || count > s->n - at ||
	    next(s->taken, at, at + count, true) != at + count)
		return false;
	slots_mark_taken(s, at, count, bytes);
	return true;
}

size_t slots_give(struct slots *s, size_t at)
{
	size_t count;

	if (at >= s->n || !bit(s->begins, at))
		return 0;
	count = s->count[at];
	mark(s->taken, at, count, false);
	mark(s->begins, at, 1, false);
	s->free += count;
	if (at < s->hint)
		s->hint = at;
	return count;
}

size_t slots_find(const struct slots *s, size_t at)
{
	size_t word = at / 64;
	uint64_t w;

	if (at >= s->n || !bit(s->taken, at))
		return SLOTS_NONE;
	w = s->begins[word] << (63 - at % 64);
	if (w)
		return at - __builtin_clzll(w);
	while (word--)
		if (s->begins[word])
			return word * 64 + 63 - __builtin_clzll(s->begins[word]);
	return SLOTS_NONE;
}
