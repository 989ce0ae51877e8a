/* SPDX-License-Identifier: Apache-2.0 */
#include "store_wire.h"

#include <string.h>

#define MAGIC	  0x3c85f7ceu
#define MOST_KEYS (128u << 10)
#define MOST	  ((uint64_t)64 << 20) /* bytes of a value */

enum { KEY_READY, KEY_NOT_READY };
enum { WAIT_OVER, WAIT_CANCELLED };

/* ---- bytes of a request ---- */

struct cursor {
	const uint8_t *p, *end;
	bool short_; /* the rest has not come yet */
	bool bad;
};

static uint64_t number(struct cursor *c, size_t bytes)
{
	uint64_t n = 0;

	if (c->short_ || (size_t)(c->end - c->p) < bytes) { /* nor what follows it */
		c->short_ = true;
		return 0;
	}
	memcpy(&n, c->p, bytes);
	c->p += bytes;
	return n;
}

static struct piece text(struct cursor *c)
{
	uint64_t len = number(c, 8);
	struct piece found = { (const char *)c->p, (size_t)len };

	c->bad |= len > MOST;
	if (c->short_ || c->bad)
		return (struct piece){ "", 0 };
	if ((uint64_t)(c->end - c->p) < len) {
		c->short_ = true;
		return (struct piece){ "", 0 };
	}
	c->p += len;
	return found;
}

static uint64_t keys(struct cursor *c)
{
	uint64_t n = number(c, 8);

	c->bad |= n > MOST_KEYS;
	return c->bad ? 0 : n;
}

static bool is_whole(const struct cursor *c)
{
	return !c->short_ && !c->bad;
}

/* ---- answers ---- */

static void say_byte(struct wire *w, uint8_t n)
{
	bytes_add(&w->out, &n, 1);
}

static void say_number(struct wire *w, uint64_t n)
{
	bytes_add(&w->out, &n, 8);
}

static void say_text(struct wire *w, struct piece value)
{
	say_number(w, value.len);
	bytes_add(&w->out, value.p, value.len);
}

/* ---- requests: each does nothing before all of it is there ---- */

static void validate(struct wire *w, struct store *s, struct cursor *c)
{
	(void)s;
	c->bad |= number(c, 4) != MAGIC && !c->short_;
	w->known = is_whole(c);
}

static void set(struct wire *w, struct store *s, struct cursor *c)
{
	struct piece key = text(c), value = text(c);

	if (is_whole(c))
		store_set(s, w->who, key, value);
}

static void compare_set(struct wire *w, struct store *s, struct cursor *c)
{
	struct piece key = text(c), expected = text(c), desired = text(c);

	if (is_whole(c))
		say_text(w, store_compare_set(s, w->who, key, expected, desired));
}

static void get(struct wire *w, struct store *s, struct cursor *c)
{
	struct piece key = text(c);

	if (is_whole(c))
		say_text(w, store_get(s, w->who, key));
}

static void add(struct wire *w, struct store *s, struct cursor *c)
{
	struct piece key = text(c);
	int64_t n = (int64_t)number(c, 8);

	if (is_whole(c))
		say_number(w, (uint64_t)store_add(s, w->who, key, n));
}

static void check(struct wire *w, struct store *s, struct cursor *c)
{
	bool all = true;

	for (uint64_t n = keys(c); n && is_whole(c); n--)
		all &= store_has(s, text(c));
	if (is_whole(c))
		say_byte(w, all ? KEY_READY : KEY_NOT_READY);
}

/* The next of the keys that are waited for. */
static bool next_key(const struct wire *w, size_t *at, struct piece *key)
{
	if (*at >= w->waits.len)
		return false;
	memcpy(&key->len, w->waits.p + *at, sizeof(key->len));
	key->p = (const char *)w->waits.p + *at + sizeof(key->len);
	*at += sizeof(key->len) + key->len;
	return true;
}

static void wait(struct wire *w, struct store *s, struct cursor *c)
{
	struct piece next;

	w->waits.len = 0;
	for (uint64_t n = keys(c); n && is_whole(c); n--) {
		struct piece key = text(c);

		bytes_add(&w->waits, &key.len, sizeof(key.len));
		bytes_add(&w->waits, key.p, key.len);
	}
	w->waiting = is_whole(c);
	for (size_t at = 0; w->waiting && next_key(w, &at, &next);)
		store_wait(s, w->who, next);
}

static void count(struct wire *w, struct store *s, struct cursor *c)
{
	(void)c;
	say_number(w, store_count(s));
}

static void delete (struct wire *w, struct store *s, struct cursor *c)
{
	struct piece key = text(c);

	if (is_whole(c))
		say_number(w, store_delete(s, key));
}

static void append(struct wire *w, struct store *s, struct cursor *c)
{
	struct piece key = text(c), value = text(c);

	if (is_whole(c))
		store_append(s, w->who, key, value);
}

static void multi_get(struct wire *w, struct store *s, struct cursor *c)
{
	size_t before = w->out.len;

	for (uint64_t n = keys(c); n && is_whole(c); n--) {
		struct piece key = text(c);

		if (is_whole(c))
			say_text(w, store_get(s, w->who, key));
	}
	if (!is_whole(c))
		w->out.len = before;
}

/* Set once more is the same. */
static void multi_set(struct wire *w, struct store *s, struct cursor *c)
{
	for (uint64_t n = keys(c); n && is_whole(c); n--)
		set(w, s, c);
}

static void cancel_wait(struct wire *w, struct store *s, struct cursor *c)
{
	(void)s, (void)c;
	w->waiting = false;
	say_byte(w, WAIT_CANCELLED);
}

static void ping(struct wire *w, struct store *s, struct cursor *c)
{
	uint32_t nonce = (uint32_t)number(c, 4);

	(void)s;
	if (is_whole(c))
		bytes_add(&w->out, &nonce, sizeof(nonce));
}

static void push(struct wire *w, struct store *s, struct cursor *c)
{
	struct piece key = text(c), value = text(c);

	if (is_whole(c))
		store_push(s, w->who, key, value);
}

/* How many there are, then the first. */
static void pop(struct wire *w, struct store *s, struct cursor *c)
{
	struct piece key = text(c), value;

	if (!is_whole(c))
		return;
	say_number(w, store_length(s, key));
	if (store_pop(s, key, &value))
		say_text(w, value);
}

static void length(struct wire *w, struct store *s, struct cursor *c)
{
	struct piece key = text(c);

	if (is_whole(c))
		say_number(w, store_length(s, key));
}

static void list(struct wire *w, struct store *s, struct cursor *c)
{
	uint64_t n = store_count(s);

	(void)c;
	say_number(w, n);
	for (uint64_t i = 0; i < n; i++)
		say_text(w, store_key(s, i));
}

/* By their numbers. */
static void (*const requests[])(struct wire *w, struct store *s, struct cursor *c) = {
	validate, set,	     compare_set, get,	       add,  check, wait, count,  delete,
	append,	  multi_get, multi_set,	  cancel_wait, ping, push,  pop,  length, list,
};

enum { VALIDATE, CHECK = 5, CANCEL_WAIT = 12, PING };

/* How many bytes were taken; 0: there is no whole request. */
static size_t take_one(struct wire *w, struct store *s, bool *bad)
{
	struct cursor c = { w->in.p, w->in.p, false, false };
	uint64_t kind;

	if (!w->in.len)
		return 0;
	c.end += w->in.len;
	kind = number(&c, 1);
	if (w->waiting && kind != CANCEL_WAIT)
		return 0;
	*bad = kind >= sizeof(requests) / sizeof(requests[0]) || (!w->known && kind != VALIDATE);
	if (*bad)
		return 0;
	requests[kind](w, s, &c);
	*bad = c.bad;
	w->asked += is_whole(&c) && kind != CHECK && kind != PING;
	return is_whole(&c) ? (size_t)(c.p - w->in.p) : 0;
}

bool wire_take(struct wire *w, struct store *s, uint64_t now_ms)
{
	bool bad = false;

	for (size_t n; (n = take_one(w, s, &bad)) && !bad;) {
		memmove(w->in.p, w->in.p + n, w->in.len - n);
		w->in.len -= n;
		if (w->waiting)
			w->since_ms = now_ms;
	}
	return !bad;
}

void wire_look(struct wire *w, struct store *s, wire_hope may_be_set, void *ctx)
{
	struct piece key;
	bool all = true;

	for (size_t at = 0; w->waiting && next_key(w, &at, &key);)
		all &= store_ready(s, w->who, key, may_be_set(ctx, w, key));
	if (!w->waiting || !all)
		return;
	w->waiting = false;
	say_byte(w, WAIT_OVER);
}

void wire_free(struct wire *w)
{
	bytes_free(&w->in);
	bytes_free(&w->out);
	bytes_free(&w->waits);
}
