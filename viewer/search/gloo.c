/* SPDX-License-Identifier: Apache-2.0 */
#include "gloo.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "../base/need.h"

#define KEPT	  ((uint64_t)512 << 20) /* most bytes in all */
#define LATEST	  UINT32_MAX
#define MOST	  ((uint64_t)64 << 20) /* most bytes of one message */
#define OWN_MS	  200		       /* after this time a rank's own message will not come */
#define OTHERS_MS 20000		       /* a rank that is silent for this long will not send */

enum { SEND_BUFFER, SEND, SEND_READY, RECEIVE_READY };

struct preamble {
	uint64_t bytes, kind, slot, offset, len, remote_offset;
};

/* ---- where ranks listen ---- */

/* Its host's name, its address (a socket's and a number), each with its length before it. */
bool gloo_address(struct piece value, int port, struct bytes *ours)
{
	struct sockaddr_in a;
	uint64_t name, address;

	if (value.len < sizeof(name))
		return false;
	memcpy(&name, value.p, sizeof(name));
	if (name > 1024 || value.len < sizeof(name) + name + sizeof(address))
		return false;
	memcpy(&address, value.p + sizeof(name) + name, sizeof(address));
	if (address != sizeof(struct sockaddr_storage) + 8 ||
	    value.len < sizeof(name) + name + sizeof(address) + address)
		return false;
	memcpy(&a, value.p + sizeof(name) + name + sizeof(address), sizeof(a));
	if (a.sin_family != AF_INET)
		return false;
	a.sin_port = htons((uint16_t)port);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ours->len = 0;
	bytes_add(ours, value.p, value.len);
	memcpy(ours->p + sizeof(name) + name + sizeof(address), &a, sizeof(a));
	return true;
}

int gloo_port(int i)
{
	return i < 124 ? (4 + i) << 8 : 0;
}

/* ---- messages ---- */

static void wire_add_preamble(struct gloo_wire *w, uint64_t kind, uint64_t slot, uint64_t len)
{
	struct preamble p = { sizeof(p) + (kind == SEND ? len : 0), kind, slot, 0, len, 0 };

	bytes_add(&w->out, &p, sizeof(p));
}

static uint64_t key_of(size_t who, uint64_t slot, uint64_t len, uint64_t number)
{
	const uint64_t parts[] = { who, slot, len, number };
	uint64_t h = BYTES_HASH;

	for (size_t i = 0; i < 4; i++)
		h = ((h ^ parts[i]) * 0x9e3779b97f4a7c15ull) ^ h >> 31;
	return h;
}

static uint32_t count(struct gloo *g, size_t who, const struct preamble *p)
{
	return (*map_put(&g->counts, key_of(who, p->slot, p->len, p->kind), NULL))++;
}

static void clear(struct gloo *g)
{
	for (size_t i = 0; i < g->count; i++)
		bytes_free(&g->sent[i]);
	g->count = 0;
	g->bytes = 0;
	map_free(&g->places);
	g->places = (struct map){ 0 };
}

static void keep(struct gloo *g, const struct gloo_wire *w, const struct preamble *p)
{
	uint64_t keys[] = { key_of(w->who, p->slot, p->len, count(g, w->who, p)),
			    key_of(w->who, p->slot, p->len, LATEST) };

	if (g->bytes > KEPT)
		clear(g);
	g->sent = need_grow(g->sent, &g->room, g->count, sizeof(*g->sent));
	g->sent[g->count] = (struct bytes){ 0 };
	bytes_add(&g->sent[g->count], w->in.p + sizeof(*p), p->len);
	g->bytes += p->len + sizeof(*g->sent);
	for (size_t i = 0; i < 2; i++)
		*map_put(&g->places, keys[i], NULL) = (uint32_t)g->count;
	g->count++;
}

static void want(struct gloo_wire *w, struct gloo *g, const struct preamble *p, uint64_t now_ms)
{
	*need_item(w->wants, w->count, w->room) =
		(struct gloo_want){ p->slot, p->len, now_ms, count(g, w->who, p) };
}

static size_t take_one(struct gloo_wire *w, struct gloo *g, uint64_t now_ms, bool *bad)
{
	struct preamble p;
	uint64_t more;

	if (!w->known) { /* first the number of the pair */
		w->known = w->in.len >= 8;
		return w->known ? 8 : 0;
	}
	if (w->in.len < sizeof(p))
		return 0;
	memcpy(&p, w->in.p, sizeof(p));
	more = p.kind <= SEND ? p.len : 0;
	*bad = p.kind > RECEIVE_READY || p.len > MOST;
	if (*bad || w->in.len < sizeof(p) + more)
		return 0;
	if (p.kind == SEND)
		keep(g, w, &p);
	else if (p.kind == SEND_READY)
		wire_add_preamble(w, RECEIVE_READY, p.slot, p.len);
	else if (p.kind == RECEIVE_READY)
		want(w, g, &p, now_ms);
	return sizeof(p) + more;
}

bool gloo_take(struct gloo_wire *w, struct gloo *g, uint64_t now_ms)
{
	bool bad = false;

	for (size_t n; (n = take_one(w, g, now_ms, &bad)) && !bad;) {
		memmove(w->in.p, w->in.p + n, w->in.len - n);
		w->in.len -= n;
	}
	return !bad;
}

/* Finds the message of that length that a rank has sent to that slot: the one with the same number,
 * else the latest. */
static const struct bytes *message_find(const struct gloo *g, const struct gloo_want *wants,
					size_t who, bool any)
{
	uint32_t *at = map_get(&g->places, key_of(who, wants->slot, wants->len, wants->nth));

	if (!at && any)
		at = map_get(&g->places, key_of(who, wants->slot, wants->len, LATEST));
	return at ? &g->sent[*at] : NULL;
}

static const struct bytes *find_of_others(const struct gloo *g, const struct gloo_want *wants,
					  size_t who)
{
	const struct bytes *found = NULL;

	for (size_t i = 0; i < WORLD_RUN && !found; i++)
		if (i != who)
			found = message_find(g, wants, i, true);
	return found;
}

static bool answer(struct gloo_wire *w, struct gloo *g, const struct gloo_want *wants,
		   uint64_t now_ms, uint64_t others_since_ms)
{
	static const char zeros[4096];
	uint64_t waited = now_ms - wants->since_ms;
	const struct bytes *s = message_find(g, wants, w->who, waited >= OWN_MS);

	if (!s && waited >= OWN_MS)
		s = find_of_others(g, wants, w->who);
	if (!s && wants->len &&
	    (waited < OWN_MS || (others_since_ms && now_ms - others_since_ms < OTHERS_MS)))
		return false;
	wire_add_preamble(w, SEND_READY, wants->slot, wants->len);
	wire_add_preamble(w, SEND, wants->slot, wants->len);
	if (s)
		bytes_add(&w->out, s->p, s->len);
	for (uint64_t left = s ? 0 : wants->len, n; left; left -= n) {
		n = left < sizeof(zeros) ? left : sizeof(zeros);
		bytes_add(&w->out, zeros, n);
	}
	return true;
}

void gloo_look(struct gloo_wire *w, struct gloo *g, uint64_t now_ms, uint64_t others_since_ms)
{
	size_t kept = 0;

	for (size_t i = 0; i < w->count; i++)
		if (!answer(w, g, &w->wants[i], now_ms, others_since_ms))
			w->wants[kept++] = w->wants[i];
	w->count = kept;
}

void gloo_wire_free(struct gloo_wire *w)
{
	bytes_free(&w->in);
	bytes_free(&w->out);
	free(w->wants);
	*w = (struct gloo_wire){ 0 };
}

void gloo_free(struct gloo *g)
{
	clear(g);
	free(g->sent);
	map_free(&g->counts);
	*g = (struct gloo){ 0 };
}
