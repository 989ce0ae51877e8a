/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ranks that run may send to the rendezvous and to the peers of gloo that stand in for the
 * others: any requests, in pieces of any length, from several ranks. Never a crash or memory
 * without bound; a connection that gets the same in one piece and byte by byte answers the same.
 *
 * The input is a row of turns: who and which protocol (1 byte), how many bytes (1), the bytes.
 * Bytes of the protocol are mostly noise that ends a connection, so lengths and kinds are made
 * plausible: see lay_request and lay_message.
 */
#include <stdlib.h>
#include <string.h>

#include "../../viewer/search/gloo.h"
#include "../../viewer/search/store_wire.h"
#include "../../viewer/search/world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define RANKS 3
#define MAGIC 0x3c85f7ceu
#define KEYS  16 /* names that keys have, so that requests meet */

struct input {
	const uint8_t *p, *end;
};

/* Two worlds that hear the same: one in pieces of a turn, one byte by byte. */
struct side {
	struct store *store;
	struct gloo gloo;
	struct wire wires[RANKS];
	struct gloo_wire gloos[RANKS];
	bool wire_ended[RANKS], gloo_ended[RANKS];
};

static const struct world world = { .size = 512, .ranks = { 0, 256, 511 }, .count = RANKS };
static const int ports[WORLD_RUN] = { 1024, 1280, 1536 };

static uint64_t take(struct input *in, unsigned bytes)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < bytes && in->p < in->end; i++)
		v |= (uint64_t)*in->p++ << 8 * i;
	return v;
}

static void lay_number(struct bytes *to, uint64_t n, size_t bytes)
{
	bytes_add(to, &n, bytes);
}

/* A key of some, or any bytes; now and then a length that is not so. */
static void lay_text(struct bytes *to, struct input *in, bool key)
{
	static const char names[KEYS][12] = { "a",    "b/1", "b/2", "b/33", "c",   "c/0/1",
					      "d9",   "",    "q/1", "q/2",  "q/x", "e-11",
					      "e-12", "f",   "g_0", "g_1" };
	uint64_t n = take(in, 1), left;

	if (key && n < 0xf0) {
		lay_number(to, strlen(names[n % KEYS]), 8);
		bytes_add(to, names[n % KEYS], strlen(names[n % KEYS]));
		return;
	}
	n = n < 0xf0 ? n % 64 : n == 0xff ? take(in, 8) : take(in, 1);
	lay_number(to, n, 8);
	left = (uint64_t)(in->end - in->p);
	n = n < left ? n : left;
	bytes_add(to, in->p, n);
	in->p += n;
}

static void lay_request(struct bytes *to, struct input *in)
{
	/* k: key, v: value, n: number, m: magic, l: a list of keys, s: of keys and values */
	static const char *const shapes[] = { "m",  "kv", "kvv", "k", "kn", "l",  "l", "",  "k",
					      "kv", "l",  "s",	 "",  "i",  "kv", "k", "k", "" };
	uint64_t kind = take(in, 1) % (sizeof(shapes) / sizeof(shapes[0]) + 1), n;

	lay_number(to, kind, 1);
	if (kind >= sizeof(shapes) / sizeof(shapes[0]))
		return;
	for (const char *s = shapes[kind]; *s; s++) {
		if (*s == 'k' || *s == 'v')
			lay_text(to, in, *s == 'k');
		else if (*s == 'n')
			lay_number(to, take(in, 8), 8);
		else if (*s == 'm')
			lay_number(to, MAGIC, 4);
		else if (*s == 'i')
			lay_number(to, take(in, 4), 4);
		if (*s != 'l' && *s != 's')
			continue;
		n = take(in, 1);
		lay_number(to, n == 0xff ? take(in, 8) : n % 5, 8);
		for (uint64_t i = 0; i < n % 5; i++) {
			lay_text(to, in, true);
			if (*s == 's')
				lay_text(to, in, false);
		}
	}
}

/* Up to 4 KiB, but for lengths that are refused: what is wanted is answered in full. */
static void lay_message(struct bytes *to, struct input *in)
{
	uint64_t kind = take(in, 1) % 5, len = take(in, 2), slot = take(in, 1), n;
	uint64_t left = (uint64_t)(in->end - in->p);

	len = len >= 0xff00 ? UINT64_MAX - len : len % 4096;
	for (uint64_t i = 0; i < 6; i++) {
		const uint64_t parts[] = { 48, kind, slot, 0, len, 0 };

		lay_number(to, parts[i], 8);
	}
	n = kind > 1 || len > 4096 ? 0 : len;
	for (uint64_t i = 0; i < n; i++)
		lay_number(to, i < left ? in->p[i] : 0, 1);
	in->p += n < left ? n : left;
}

static void lay_any(struct bytes *to, struct input *in)
{
	uint64_t n = take(in, 1);
	uint64_t left = (uint64_t)(in->end - in->p);

	n = n < left ? n : left;
	bytes_add(to, in->p, n);
	in->p += n;
}

static bool may_be_set(void *ctx, const struct wire *w, struct piece key)
{
	(void)w;
	return *(bool *)ctx && key.len != 1;
}

static void hear_wire(struct side *s, size_t who, const uint8_t *p, size_t len, size_t piece)
{
	struct wire *w = &s->wires[who];

	for (size_t at = 0; at < len && !s->wire_ended[who]; at += piece) {
		bytes_add(&w->in, p + at, piece < len - at ? piece : len - at);
		s->wire_ended[who] = !wire_take(w, s->store, 1);
	}
}

static void hear_gloo(struct side *s, size_t who, const uint8_t *p, size_t len, size_t piece)
{
	struct gloo_wire *w = &s->gloos[who];

	for (size_t at = 0; at < len && !s->gloo_ended[who]; at += piece) {
		bytes_add(&w->in, p + at, piece < len - at ? piece : len - at);
		s->gloo_ended[who] = !gloo_take(w, &s->gloo, 1);
	}
}

/* As the server does: what waits is looked at, then what came behind it is taken. */
static void look(struct side *s, size_t who, bool hope, uint64_t now_ms)
{
	if (!s->wire_ended[who]) {
		wire_look(&s->wires[who], s->store, may_be_set, &hope);
		s->wire_ended[who] = !wire_take(&s->wires[who], s->store, 1);
	}
	if (!s->gloo_ended[who])
		gloo_look(&s->gloos[who], &s->gloo, now_ms, hope ? now_ms : 0);
}

static void compare(const struct bytes *a, const struct bytes *b)
{
	if (a->len != b->len || (a->len && memcmp(a->p, b->p, a->len) != 0))
		abort();
}

static void turn(struct side *sides, struct input *in)
{
	uint64_t what = take(in, 1), who = what % RANKS;
	struct bytes text = { 0 };
	bool gloo = what & 64;

	if (what & 32)
		lay_any(&text, in);
	else if (gloo)
		lay_message(&text, in);
	else
		lay_request(&text, in);
	for (int i = 0; i < 2; i++) {
		struct side *s = &sides[i];

		(gloo ? hear_gloo : hear_wire)(s, who, text.p, text.len, i ? 1 : text.len);
		look(s, who, !(what & 128), 1 + (what & 16) * 20);
		if (s->wires[who].out.len > 1 << 20) /* sent */
			s->wires[who].out.len = 0;
		if (s->gloos[who].out.len > 1 << 20)
			s->gloos[who].out.len = 0;
	}
	bytes_free(&text);
	compare(&sides[0].wires[who].out, &sides[1].wires[who].out);
	compare(&sides[0].gloos[who].out, &sides[1].gloos[who].out);
	if (sides[0].wire_ended[who] != sides[1].wire_ended[who] ||
	    sides[0].gloo_ended[who] != sides[1].gloo_ended[who])
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct side sides[2] = { 0 };
	struct input in = { data, data + len };
	uint32_t magic = MAGIC;
	uint64_t pair = 0;

	for (int i = 0; i < 2; i++) {
		sides[i].store = store_new(&world, ports);
		for (size_t who = 0; who < RANKS; who++) {
			sides[i].wires[who].who = sides[i].gloos[who].who = who;
			if (who == 2) /* says itself who it is, or not */
				continue;
			hear_wire(&sides[i], who, (const uint8_t *)"\0", 1, 1);
			hear_wire(&sides[i], who, (const uint8_t *)&magic, sizeof(magic), 4);
			hear_gloo(&sides[i], who, (const uint8_t *)&pair, sizeof(pair), 8);
		}
	}
	for (int i = 0; i < 100 && in.p < in.end; i++)
		turn(sides, &in);
	for (int i = 0; i < 2; i++) {
		for (size_t who = 0; who < RANKS; who++) {
			wire_free(&sides[i].wires[who]);
			gloo_wire_free(&sides[i].gloos[who]);
		}
		gloo_free(&sides[i].gloo);
		store_free(sides[i].store);
	}
	return 0;
}
