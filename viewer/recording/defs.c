/* SPDX-License-Identifier: Apache-2.0 */
#include "defs.h"

#include "../base/bytes.h"

/* The unread rest of a payload. */
struct rest {
	const char *p;
	size_t len;
};

static bool rest_read(struct rest *r, void *out, size_t n)
{
	if (r->len < n)
		return false;
	memcpy(out, r->p, n);
	r->p += n;
	r->len -= n;
	return true;
}

/* Strings are stored one after the other in chunks, because there are many and they are freed
 * together. */
struct defs_chunk {
	struct defs_chunk *next;
	size_t used, room;
	char bytes[];
};

#define CHUNK (256 * 1024)

static const char *keep(struct defs *d, const void *bytes, size_t len)
{
	struct defs_chunk *c = d->chunks;
	char *at;

	if (!c || c->room - c->used < len + 1) {
		size_t room = len + 1 > CHUNK ? len + 1 : CHUNK;

		c = need_new(sizeof(*c) + room);
		c->room = room;
		c->next = d->chunks;
		d->chunks = c;
	}
	at = c->bytes + c->used;
	if (len)
		memcpy(at, bytes, len);
	at[len] = 0;
	c->used += len + 1;
	return at;
}

static bool take_text(struct defs *d, struct rest *r, size_t n, struct defs_text *out)
{
	if (r->len < n)
		return false;
	*out = (struct defs_text){ keep(d, r->p, n), n };
	r->p += n;
	r->len -= n;
	return true;
}

/* The entry for an id; an id that occurs again replaces its entry. */
static void *kind_entry(struct defs_kind *k, uint64_t id, size_t each)
{
	uint32_t at = map_number(&k->ids, id, k->count);

	if (at == k->count)
		k->items = need_grow(k->items, &k->room, k->count++, each);
	return (char *)k->items + at * each;
}

static bool add_string(struct defs *d, uint32_t id, struct rest r)
{
	struct defs_text t;

	take_text(d, &r, r.len, &t);
	*(struct defs_text *)kind_entry(&d->strings, id, sizeof(t)) = t;
	return true;
}

static bool add_meta(struct defs *d, UNUSED uint32_t id, struct rest r)
{
	struct gmt_def_meta h;
	struct defs_meta m;

	if (!rest_read(&r, &h, sizeof(h)) || !take_text(d, &r, h.key_len, &m.key) ||
	    !take_text(d, &r, r.len, &m.value))
		return false;
	*(struct defs_meta *)kind_entry(&d->metas, d->metas.count, sizeof(m)) = m;
	return true;
}

static bool add_thread(struct defs *d, uint32_t id, struct rest r)
{
	struct gmt_def_thread h;
	struct defs_thread t = { .id = id };

	if (!rest_read(&r, &h, sizeof(h)) || !take_text(d, &r, h.name_len, &t.name))
		return false;
	t.tid = h.tid;
	*(struct defs_thread *)kind_entry(&d->threads, id, sizeof(t)) = t;
	return true;
}

static bool add_module(struct defs *d, uint32_t id, struct rest r)
{
	struct gmt_def_module h;
	struct defs_module m = { .id = id };

	if (!rest_read(&r, &h, sizeof(h)) || !take_text(d, &r, h.build_id_len, &m.build_id) ||
	    !take_text(d, &r, h.path_len, &m.path))
		return false;
	m.start = h.start;
	m.end = h.end;
	m.bias = h.bias;
	m.seq = h.seq;
	*(struct defs_module *)kind_entry(&d->modules, id, sizeof(m)) = m;
	return true;
}

static bool add_code(struct defs *d, uint32_t id, struct rest r)
{
	struct gmt_def_code h;
	struct defs_code c = { .id = id };

	if (!rest_read(&r, &h, sizeof(h)) || !take_text(d, &r, h.file_len, &c.file) ||
	    !take_text(d, &r, h.name_len, &c.name) || !take_text(d, &r, h.table_len, &c.table))
		return false;
	c.first_line = h.first_line;
	c.python = h.python;
	c.flags = h.flags;
	*(struct defs_code *)kind_entry(&d->codes, id, sizeof(c)) = c;
	return true;
}

static bool add_stack(struct defs *d, uint32_t id, struct rest r)
{
	struct gmt_def_stack h;

	if (!rest_read(&r, &h, sizeof(h)))
		return false;
	*(struct defs_node *)kind_entry(&d->nodes, id, sizeof(struct defs_node)) =
		(struct defs_node){ h.value, h.parent, h.frame };
	return true;
}

static bool add_symbol(struct defs *d, uint32_t id, struct rest r)
{
	struct gmt_def_symbol h;
	struct defs_symbol s = { .id = id };

	if (!rest_read(&r, &h, sizeof(h)) || !take_text(d, &r, h.file_len, &s.file) ||
	    !take_text(d, &r, h.name_len, &s.name))
		return false;
	s.address = h.address;
	s.line = h.line;
	*(struct defs_symbol *)kind_entry(&d->symbols, id, sizeof(s)) = s;
	return true;
}

static bool add_function(struct defs *d, UNUSED uint32_t id, struct rest r)
{
	struct gmt_def_function h;
	struct defs_text t;

	if (!rest_read(&r, &h, sizeof(h)) || !take_text(d, &r, r.len, &t))
		return false;
	*(struct defs_text *)kind_entry(&d->functions, h.address, sizeof(t)) = t;
	return true;
}

/* Sources are found by file and line, not by id. Two of them may have the same hash. Then the key
 * is the next one that is free or already theirs. */
static uint64_t source_key(const struct defs *d, const char *file, unsigned line)
{
	const struct defs_source *sources = d->sources.items;
	uint64_t key = bytes_hash(BYTES_HASH, file, strlen(file));
	const uint32_t *at;

	for (key = (key ^ line) * 0x9e3779b97f4a7c15ull; (at = map_get(&d->sources.ids, key));
	     key++)
		if (sources[*at].line == line && !strcmp(sources[*at].file.s, file))
			break;
	return key;
}

static bool add_source(struct defs *d, UNUSED uint32_t id, struct rest r)
{
	struct gmt_def_source h;
	struct defs_source s = { 0 };

	if (!rest_read(&r, &h, sizeof(h)) || !take_text(d, &r, h.file_len, &s.file) ||
	    !take_text(d, &r, r.len, &s.text))
		return false;
	s.line = h.line;
	s.flags = h.flags;
	*(struct defs_source *)kind_entry(&d->sources, source_key(d, s.file.s, s.line), sizeof(s)) =
		s;
	return true;
}

const struct defs_source *defs_source(const struct defs *d, const char *file, unsigned line)
{
	const uint32_t *at = map_get(&d->sources.ids, source_key(d, file, line));

	return at ? (const struct defs_source *)d->sources.items + *at : NULL;
}

int defs_add(void *ctx, const struct gmt_def *def)
{
	static bool (*const add[])(struct defs *, uint32_t, struct rest) = {
		[GMT_DEF_STRING] = add_string,	   [GMT_DEF_META] = add_meta,
		[GMT_DEF_THREAD] = add_thread,	   [GMT_DEF_MODULE] = add_module,
		[GMT_DEF_CODE] = add_code,	   [GMT_DEF_STACK] = add_stack,
		[GMT_DEF_SYMBOL] = add_symbol,	   [GMT_DEF_SOURCE] = add_source,
		[GMT_DEF_FUNCTION] = add_function,
	};
	struct defs *d = ctx;

	if (def->kind >= sizeof(add) / sizeof(add[0]) || !add[def->kind])
		return 0;
	if (!add[def->kind](d, def->id, (struct rest){ def->payload, def->len }))
		d->bad++;
	return 0;
}

static int stop(UNUSED void *ctx, UNUSED const struct gmt_event *e)
{
	return 1;
}

int defs_read(struct gmt_reader *r, int (*def)(void *ctx, const struct gmt_def *d), void *ctx)
{
	const struct gmt_tool tool = { .def = def, .event = stop };

	return gmt_reader_run(r, 0, UINT64_MAX, &tool, ctx);
}

static const void *find_definition(const struct defs_kind *k, uint64_t id, size_t each)
{
	const uint32_t *at = map_get(&k->ids, id);

	return at ? (const char *)k->items + *at * each : NULL;
}

struct defs_text defs_string(const struct defs *d, uint32_t id)
{
	const struct defs_text *t = find_definition(&d->strings, id, sizeof(*t));

	return t ? *t : (struct defs_text){ "", 0 };
}

const struct defs_thread *defs_thread(const struct defs *d, uint32_t id)
{
	return find_definition(&d->threads, id, sizeof(struct defs_thread));
}

const struct defs_code *defs_code(const struct defs *d, uint32_t id)
{
	return find_definition(&d->codes, id, sizeof(struct defs_code));
}

const struct defs_node *defs_node(const struct defs *d, uint32_t id)
{
	return find_definition(&d->nodes, id, sizeof(struct defs_node));
}

struct defs_text defs_function(const struct defs *d, uint64_t address)
{
	const struct defs_text *t = find_definition(&d->functions, address, sizeof(*t));

	return t ? *t : (struct defs_text){ "", 0 };
}

struct defs_text defs_meta(const struct defs *d, const char *key)
{
	const struct defs_meta *m = d->metas.items;

	for (size_t i = d->metas.count; i-- > 0;)
		if (!strcmp(m[i].key.s, key))
			return m[i].value;
	return (struct defs_text){ "", 0 };
}

bool defs_has_file(const struct defs *d, const char *part)
{
	const struct defs_code *codes = d->codes.items;

	for (size_t i = 0; i < d->codes.count; i++)
		if (strstr(codes[i].file.s, part))
			return true;
	return false;
}

static void free_kind(struct defs_kind *k)
{
	free(k->items);
	map_free(&k->ids);
}

void defs_free(struct defs *d)
{
	struct defs_kind *kinds[] = { &d->strings, &d->threads, &d->modules,
				      &d->codes,   &d->nodes,	&d->metas,
				      &d->symbols, &d->sources, &d->functions };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		free_kind(kinds[i]);
	while (d->chunks) {
		struct defs_chunk *next = d->chunks->next;

		free(d->chunks);
		d->chunks = next;
	}
	*d = (struct defs){ 0 };
}
