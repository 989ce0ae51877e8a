/* SPDX-License-Identifier: Apache-2.0 */
#include "defs.h"

#include "../../format/record.h"
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

static const char *keep_bytes(struct defs *d, const void *bytes, size_t len)
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
	*out = (struct defs_text){ keep_bytes(d, r->p, n), n };
	r->p += n;
	r->len -= n;
	return true;
}

/* An id that occurs again replaces its entry. */
#define KEEP(kind, id, def) (*map_item(&d->kind, (id)) = (def), true)

static bool add_string(struct defs *d, uint32_t id, UNUSED const void *head, struct rest r)
{
	struct defs_text t;

	return take_text(d, &r, r.len, &t) && KEEP(strings, id, t);
}

static bool add_meta(struct defs *d, UNUSED uint32_t id, const void *head, struct rest r)
{
	const struct gmt_def_meta *h = head;
	struct defs_meta m;

	return take_text(d, &r, h->key_len, &m.key) && take_text(d, &r, r.len, &m.value) &&
	       KEEP(metas, d->metas.count, m);
}

static bool add_thread(struct defs *d, uint32_t id, const void *head, struct rest r)
{
	const struct gmt_def_thread *h = head;
	struct defs_thread t = { .id = id, .tid = h->tid };

	return take_text(d, &r, h->name_len, &t.name) && KEEP(threads, id, t);
}

static bool add_module(struct defs *d, uint32_t id, const void *head, struct rest r)
{
	const struct gmt_def_module *h = head;
	struct defs_module m = {
		.id = id, .start = h->start, .end = h->end, .bias = h->bias, .seq = h->seq
	};

	return take_text(d, &r, h->build_id_len, &m.build_id) &&
	       take_text(d, &r, h->path_len, &m.path) && KEEP(modules, id, m);
}

static bool add_code(struct defs *d, uint32_t id, const void *head, struct rest r)
{
	const struct gmt_def_code *h = head;
	struct defs_code c = {
		.id = id, .first_line = h->first_line, .python = h->python, .flags = h->flags
	};

	return take_text(d, &r, h->file_len, &c.file) && take_text(d, &r, h->name_len, &c.name) &&
	       take_text(d, &r, h->table_len, &c.table) && KEEP(codes, id, c);
}

static bool add_stack(struct defs *d, uint32_t id, const void *head, UNUSED struct rest r)
{
	const struct gmt_def_stack *h = head;

	return KEEP(nodes, id, ((struct defs_node){ h->value, h->parent, h->frame }));
}

static bool add_symbol(struct defs *d, uint32_t id, const void *head, struct rest r)
{
	const struct gmt_def_symbol *h = head;
	struct defs_symbol s = { .id = id, .address = h->address, .line = h->line };

	return take_text(d, &r, h->file_len, &s.file) && take_text(d, &r, h->name_len, &s.name) &&
	       KEEP(symbols, id, s);
}

static bool add_function(struct defs *d, UNUSED uint32_t id, const void *head, struct rest r)
{
	const struct gmt_def_function *h = head;
	struct defs_text t;

	return take_text(d, &r, r.len, &t) && KEEP(functions, h->address, t);
}

/* Sources are found by file and line, not by id. If two of them have the same hash, the second gets
 * the next free key. */
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

static bool add_source(struct defs *d, UNUSED uint32_t id, const void *head, struct rest r)
{
	const struct gmt_def_source *h = head;
	struct defs_source s = { .line = h->line, .flags = h->flags };

	return take_text(d, &r, h->file_len, &s.file) && take_text(d, &r, r.len, &s.text) &&
	       KEEP(sources, source_key(d, s.file.s, s.line), s);
}

const struct defs_source *defs_source(const struct defs *d, const char *file, unsigned line)
{
	return map_find(&d->sources, source_key(d, file, line));
}

static bool add_variable(struct defs *d, struct rest *r)
{
	struct defs_variable v = { .name.len = 0 };

	if (!rest_read(r, &v.head, sizeof(v.head)) || v.head.dims > GMT_VARIABLE_DIMS ||
	    !rest_read(r, v.sizes, v.head.dims * sizeof(*v.sizes)) ||
	    !take_text(d, r, v.head.name_len, &v.name))
		return false;
	*need_item(d->variables, d->variable_count, d->variable_room) = v;
	return true;
}

/* If one variable cannot be read, none of its frame is kept. */
static bool add_variables(struct defs *d, UNUSED uint32_t id, const void *head, struct rest r)
{
	const struct gmt_def_variables *h = head;
	struct defs_variables x = { h->seq, h->node, h->count, h->flags & 1, d->variable_count, 0 };
	uint32_t *latest;

	for (uint32_t i = 0; i < h->count; i++)
		if (!add_variable(d, &r)) {
			d->variable_count = x.first;
			return false;
		}
	latest = map_put(&d->frame_of, h->node, NULL);
	x.before = *latest;
	*latest = (uint32_t)d->frames.count + 1;
	return KEEP(frames, d->frames.count, x);
}

const struct defs_variables *defs_variables(const struct defs *d, uint32_t node, uint64_t seq)
{
	const struct defs_variables *frames = d->frames.items, *found = NULL;
	const uint32_t *latest = map_get(&d->frame_of, node);

	for (size_t at = latest ? *latest : 0; at; at = frames[at - 1].before) {
		found = &frames[at - 1];
		if (found->seq <= seq)
			break;
	}
	return found;
}

const struct defs_variable *defs_variable(const struct defs *d, const struct defs_variables *x,
					  uint32_t i)
{
	return &d->variables[x->first + i];
}

/* For each kind of definition, the bytes of its head and the function that adds it. */
static const struct {
	size_t head;
	bool (*add)(struct defs *d, uint32_t id, const void *head, struct rest r);
} def_kinds[] = {
	[GMT_DEF_STRING] = { 0, add_string },
	[GMT_DEF_META] = { sizeof(struct gmt_def_meta), add_meta },
	[GMT_DEF_THREAD] = { sizeof(struct gmt_def_thread), add_thread },
	[GMT_DEF_MODULE] = { sizeof(struct gmt_def_module), add_module },
	[GMT_DEF_CODE] = { sizeof(struct gmt_def_code), add_code },
	[GMT_DEF_STACK] = { sizeof(struct gmt_def_stack), add_stack },
	[GMT_DEF_SYMBOL] = { sizeof(struct gmt_def_symbol), add_symbol },
	[GMT_DEF_SOURCE] = { sizeof(struct gmt_def_source), add_source },
	[GMT_DEF_VARIABLES] = { sizeof(struct gmt_def_variables), add_variables },
	[GMT_DEF_FUNCTION] = { sizeof(struct gmt_def_function), add_function },
};

int defs_add(void *ctx, const struct gmt_def *def)
{
	struct defs *d = ctx;
	struct rest r = { def->payload, def->len };
	uint64_t head[8]; /* larger than the head of any kind */

	if (def->kind >= sizeof(def_kinds) / sizeof(def_kinds[0]) || !def_kinds[def->kind].add)
		return 0;
	if (!rest_read(&r, head, def_kinds[def->kind].head) ||
	    !def_kinds[def->kind].add(d, def->id, head, r))
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

struct defs_text defs_string(const struct defs *d, uint32_t id)
{
	const struct defs_text *t = map_find(&d->strings, id);

	return t ? *t : (struct defs_text){ "", 0 };
}

const struct defs_thread *defs_thread(const struct defs *d, uint32_t id)
{
	return map_find(&d->threads, id);
}

const struct defs_code *defs_code(const struct defs *d, uint32_t id)
{
	return map_find(&d->codes, id);
}

const struct defs_node *defs_node(const struct defs *d, uint32_t id)
{
	return map_find(&d->nodes, id);
}

struct defs_text defs_function(const struct defs *d, uint64_t address)
{
	const struct defs_text *t = map_find(&d->functions, address);

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

	return ANY_OF(x, codes, d->codes.count, strstr(x->file.s, part));
}

void defs_free(struct defs *d)
{
	map_items_free(&d->strings);
	map_items_free(&d->threads);
	map_items_free(&d->modules);
	map_items_free(&d->codes);
	map_items_free(&d->nodes);
	map_items_free(&d->frames);
	map_free(&d->frame_of);
	free(d->variables);
	map_items_free(&d->metas);
	map_items_free(&d->symbols);
	map_items_free(&d->sources);
	map_items_free(&d->functions);
	while (d->chunks) {
		struct defs_chunk *next = d->chunks->next;

		free(d->chunks);
		d->chunks = next;
	}
	*d = (struct defs){ 0 };
}
