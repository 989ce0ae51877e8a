/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The string table. Any thread, before and during a session; never blocks. Copies live in chunks
 * that are never freed.
 */
#include "intern_string.h"

#include "../../format/record.h"
#include "../capture.h"
#include "../base/intern.h"
#include "../rings/thread.h"

#include <string.h>

#define CHUNK_BYTES (256u * 1024u)
#define CHUNKS_MOST 256u /* 64 MiB of different names */

struct chunk {
	size_t used;
	char bytes[];
};

static struct intern_table strings;
static uint64_t cut; /* strings that got no id, because there was no room */
static uint32_t chunks;
static struct chunk *chunk;

/*
 * Compares by hand, as copy_text() copies: the thread sanitizer of a recorded program sees the C
 * library's functions but not our atomics, and would report a race.
 */
static bool same_text(const struct intern_entry *e, uint64_t a, uint64_t b)
{
	const char *x = (const char *)(uintptr_t)e->a, *y = (const char *)(uintptr_t)a;
	uint64_t i = 0, one, other;

	if (e->b != b)
		return false;
	for (; i + sizeof(one) <= b; i += sizeof(one)) {
		__builtin_memcpy(&one, x + i, sizeof(one));
		__builtin_memcpy(&other, y + i, sizeof(other));
		if (one != other)
			return false;
	}
	while (i < b && x[i] == y[i])
		i++;
	return i == b;
}

static const char *copy_text(char *to, const char *from, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		to[i] = from[i];
		__asm__ volatile(
			"" ::
				: "memory"); /* so that the loop does not become a call of memcpy */
	}
	return to;
}

static struct chunk *next_chunk(struct chunk *full)
{
	struct chunk *mine;

	if (__atomic_load_n(&chunks, __ATOMIC_RELAXED) >= CHUNKS_MOST)
		return NULL;
	mine = os_map(CHUNK_BYTES);
	if (!mine)
		return NULL;
	if (__atomic_compare_exchange_n(&chunk, &full, mine, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE)) {
		__atomic_add_fetch(&chunks, 1, __ATOMIC_RELAXED);
		return mine;
	}
	os_unmap(mine, CHUNK_BYTES);
	return full;
}

static const char *keep_string(const char *s, size_t len)
{
	struct chunk *c = __atomic_load_n(&chunk, __ATOMIC_ACQUIRE);

	for (int tries = 0; tries < 8; tries++) {
		size_t at = c ? __atomic_fetch_add(&c->used, len, __ATOMIC_RELAXED) : CHUNK_BYTES;

		if (c && at + len <= CHUNK_BYTES - sizeof(*c))
			return copy_text(c->bytes + at, s, len);
		c = next_chunk(c);
	}
	return NULL;
}

static bool define_now(uint32_t id, const char *s, size_t len)
{
	struct gmt_def d = { .kind = GMT_DEF_STRING, .id = id, .len = (uint32_t)len, .payload = s };
	struct thread *t = thread_self();

	return thread_ready(t) && thread_push_def(t, &d);
}

static size_t at_most(size_t len)
{
	return len < STRING_MAX ? len : STRING_MAX;
}

static uint32_t find_string(const char *s, size_t len, struct intern_entry **claimed)
{
	return intern_find(&strings, intern_hash_bytes(s, len), (uintptr_t)s, len, same_text,
			   claimed);
}

/* The text to publish: a copy, or `s` if there is nothing to publish. NULL: there is no room. */
static const char *keep_if(const struct intern_entry *claimed, const char *s, size_t len)
{
	if (claimed == INTERN_BUSY)
		return s;
	return claimed ? keep_string(s, len) : NULL;
}

static uint32_t give_up(struct intern_entry *claimed)
{
	__atomic_add_fetch(&cut, 1, __ATOMIC_RELAXED);
	intern_publish(claimed, 0, 0, INTERN_DEAD);
	return 0;
}

uint32_t strings_id(const char *s, size_t len, bool (*emit)(const struct gmt_def *d))
{
	struct gmt_def d = { .kind = GMT_DEF_STRING, .len = (uint32_t)at_most(len), .payload = s };
	struct intern_entry *claimed;
	const char *copy;

	d.id = find_string(s, d.len, &claimed);
	if (d.id)
		return d.id;
	copy = keep_if(claimed, s, d.len);
	if (!copy)
		return give_up(claimed);
	d.id = intern_new_id(&strings);
	intern_publish(claimed, (uintptr_t)copy, d.len, d.id);
	emit(&d);
	return d.id;
}

/*
 * find() before a session: when a recording begins, only strings in the table are defined. So a
 * string that another thread is about to publish gets a second entry.
 */
static uint32_t find_early(const char *s, size_t len, struct intern_entry **claimed)
{
	const struct intern_key key = { intern_hash_bytes(s, len), (uintptr_t)s, len, same_text };
	uint32_t id = find_string(s, len, claimed);

	return !id && *claimed == INTERN_BUSY ? intern_find_past(&strings, &key, claimed) : id;
}

uint32_t gmt_string(const char *s, size_t len)
{
	struct intern_entry *claimed;
	bool defined = session_on();
	const char *copy;
	uint32_t id;

	if (!s)
		return 0;
	len = at_most(len);
	id = defined ? find_string(s, len, &claimed) : find_early(s, len, &claimed);
	if (id)
		return id;
	copy = keep_if(claimed, s, len);
	if (!copy)
		return give_up(claimed);
	id = intern_new_id(&strings);
	if (defined && !define_now(id, s, len))
		id = INTERN_DEAD;
	intern_publish(claimed, (uintptr_t)copy, len, id);
	/* the session might have gone through the table before this one was in it */
	if (!defined && __atomic_fetch_or(&gmt_session.state, 0, __ATOMIC_SEQ_CST) == SESSION_ON)
		define_now(id, s, len);
	return id == INTERN_DEAD ? 0 : id;
}

uint64_t strings_cut(void)
{
	return __atomic_load_n(&cut, __ATOMIC_RELAXED);
}

static void define_entry(void *ctx, const struct intern_entry *e)
{
	bool (*emit)(const struct gmt_def *d) = *(bool (**)(const struct gmt_def *))ctx;
	struct gmt_def d = {
		.kind = GMT_DEF_STRING,
		.id = e->id,
		.len = (uint32_t)e->b,
		.payload = (const void *)(uintptr_t)e->a,
	};

	emit(&d);
}

void strings_each(bool (*emit)(const struct gmt_def *d))
{
	intern_each(&strings, define_entry, &emit);
}

void strings_forget(void)
{
	intern_forget(&strings);
	cut = 0;
	chunk = NULL;
	chunks = 0;
}
