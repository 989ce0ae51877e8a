/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording that was a snapshot becomes that snapshot again: every member as it was, also those
 * that no event has a place for. Only classes are put to it, where the program set no metadata of
 * its own. An allocation of the trace is the event of the same number, a free is known by its
 * address.
 */
#include "../recording/pickle.h"
#include "../recording/pickle_write.h"
#include "export_torch.h"

/*
 * Writes values that were read from a pickle into another one, each shared list or dictionary once.
 * What holds itself ends with None, so does what is nested deeper than anyone's data is.
 */

struct pickle_copy {
	const struct pickle *from;
	struct pickler *to;
	uint32_t *uses; /* of each value, by lists and dictionaries */
	struct map kept;
	unsigned depth;
};

#define DEPTH 100
#define OPEN  UINT32_MAX /* it is being written: who meets it there is inside of it */

static void pickle_copy_start(struct pickle_copy *c, const struct pickle *from, struct pickler *to)
{
	*c = (struct pickle_copy){ .from = from, .to = to };
	c->uses = need_new((from->count + 1) * sizeof(*c->uses));
	for (size_t i = 0; i < from->count; i++) {
		const struct pickle_value *v = &from->values[i];
		size_t n = v->type == PICKLE_LIST   ? v->count
			   : v->type == PICKLE_DICT ? 2 * (size_t)v->count
						    : 0;

		for (size_t k = 0; k < n; k++)
			c->uses[v->items[k]]++;
	}
	c->uses[from->root]++;
}

static void pickle_copy_end(struct pickle_copy *c)
{
	free(c->uses);
	map_free(&c->kept);
}

static void pickle_copy(struct pickle_copy *c, const struct pickle_value *v);

static void copy_list(struct pickle_copy *c, const struct pickle_value *v)
{
	pickler_list(c->to);
	for (uint32_t i = 0; i < v->count; i++) {
		pickler_next(c->to, i);
		pickle_copy(c, pickle_item(c->from, v, i));
	}
	pickler_list_end(c->to, v->count);
}

static void copy_tuple(struct pickle_copy *c, const struct pickle_value *v)
{
	if (v->count > 3)
		pickler_mark(c->to);
	for (uint32_t i = 0; i < v->count; i++)
		pickle_copy(c, pickle_item(c->from, v, i));
	pickler_tuple(c->to, v->count);
}

static void copy_dict(struct pickle_copy *c, const struct pickle_value *v)
{
	pickler_dict(c->to);
	for (size_t i = 0; i < 2 * (size_t)v->count; i++)
		pickle_copy(c, pickle_at(c->from, v->items[i]));
	pickler_dict_end(c->to);
}

static void copy_holder(struct pickle_copy *c, const struct pickle_value *v)
{
	uint64_t id = (uint64_t)(v - c->from->values);
	const uint32_t *at = map_get(&c->kept, id);
	bool fresh;

	if (at && *at != OPEN) {
		pickler_again(c->to, *at);
		return;
	}
	if (at || c->depth >= DEPTH) {
		pickler_none(c->to);
		return;
	}
	if (c->uses[id] > 1)
		*map_put(&c->kept, id, &fresh) = OPEN;
	c->depth++;
	if (v->type == PICKLE_DICT)
		copy_dict(c, v);
	else if (v->form == PICKLE_TUPLE)
		copy_tuple(c, v);
	else
		copy_list(c, v);
	c->depth--;
	if (c->uses[id] > 1)
		*map_put(&c->kept, id, &fresh) = pickler_keep(c->to);
}

static void pickle_copy(struct pickle_copy *c, const struct pickle_value *v)
{
	switch (v->type) {
	case PICKLE_BOOL:
		pickler_bool(c->to, v->number);
		return;
	case PICKLE_INT:
		if (v->form == PICKLE_BEYOND)
			pickler_beyond(c->to, (uint64_t)v->number);
		else
			pickler_int(c->to, v->number);
		return;
	case PICKLE_FLOAT:
		pickler_float(c->to, v->real);
		return;
	case PICKLE_TEXT:
		if (v->form == PICKLE_BYTES)
			pickler_text(c->to, v->text, v->count);
		else
			pickler_utf8(c->to, v->text, v->count);
		return;
	case PICKLE_LIST:
	case PICKLE_DICT:
		copy_holder(c, v);
		return;
	default:
		pickler_none(c->to);
	}
}

#define OWN_METADATA " (gpumemtrace)"

/* The classes of a device's allocations, in the order of its trace. */
struct classes {
	uint64_t *seqs; /* of their events */
	size_t count, room, next;
	struct map now, end; /* address -> class + 1: as the trace goes on; after it */
};

struct again {
	struct export *x;
	struct pickle from;
	struct pickler p;
	struct pickle_copy copy;
	struct classes *devices;
	struct map births; /* seq -> class + 1 */
	bool named;
};

void export_torch_class(struct pickler *p, int class)
{
	char text[64] = "";

	if (class >= 0)
		snprintf(text, sizeof(text), "%s" OWN_METADATA, categories[class].words);
	pickler_word(p, "user_metadata");
	pickler_word(p, text);
}

void export_torch_category(struct pickler *p, bool *named, const char *action, int class)
{
	bool birth = !strcmp(action, "alloc");

	if (birth && (!*named || class < 0))
		return;
	*named = true;
	pickler_word(p, "category");
	pickler_word(p, birth ? categories[class].words : "unknown");
}

static int add_part(void *ctx, const struct gmt_def *d)
{
	struct torch_source *s = ctx;

	if (d->kind != GMT_DEF_SNAPSHOT || !d->len)
		return 0;
	while (s->room - s->len < d->len) {
		s->room = s->room ? 2 * s->room : 1 << 20;
		s->bytes = need_resize(s->bytes, s->room);
	}
	memcpy(s->bytes + s->len, d->payload, d->len);
	s->len += d->len;
	return 0;
}

int export_torch_source(struct export *x, struct torch_source *s)
{
	int rc;

	*s = (struct torch_source){ 0 };
	rc = defs_read(x->recording->reader, add_part, s);
	if (rc < 0)
		return recording_refused(x->recording->path, rc);
	return 0;
}

static void note_birth(struct again *a, struct classes *c, uint32_t life)
{
	struct block b;
	uint32_t class = export_verdict(a->x, life, &b).category + 1;
	bool late = b.flags & GMT_FLAG_LATE;

	*map_put(&a->births, b.seq, NULL) = class;
	*map_put(&c->end, b.addr, NULL) = class;
	if (late && !c->count)
		*map_put(&c->now, b.addr, NULL) = class;
	if (late || b.memory)
		return;
	*need_item(c->seqs, c->count, c->room) = b.seq;
}

static void on_life(void *ctx, uint32_t life, bool ended)
{
	struct again *a = ctx;
	const struct lives *l = &a->x->facts.lives;
	const struct life *row = lives_at(l, life);
	struct classes *c;

	if (!export_counts(a->x, life))
		return;
	c = &a->devices[lives_position(l, row->born.position)->device];
	if (ended)
		map_remove(&c->end, row->addr);
	else
		note_birth(a, c, life);
}

static int class_at(const struct map *m, uint64_t key)
{
	const uint32_t *at = map_get(m, key);

	return at ? (int)*at - 1 : -1;
}

static int class_of_entry(struct again *a, struct classes *c, const struct pickle_value *e)
{
	const struct pickle_value *action = pickle_text(&a->from, e, "action");
	uint64_t addr = pickle_number(&a->from, e, "addr");
	int class;

	if (!pickle_is(action, "alloc"))
		return pickle_is(action, "free_requested") || pickle_is(action, "free_completed")
			       ? class_at(&c->now, addr)
			       : -1;
	class = c->next < c->count ? class_at(&a->births, c->seqs[c->next++]) : -1;
	*map_put(&c->now, addr, NULL) = (uint32_t)(class + 1);
	return class;
}

static bool is_free_text(const struct pickle_value *v)
{
	size_t n = strlen(OWN_METADATA);

	return v->type == PICKLE_NONE ||
	       (v->type == PICKLE_TEXT &&
		(!v->count || (v->count >= n && !memcmp(v->text + v->count - n, OWN_METADATA, n))));
}

/* The members of a dictionary but those that say our classes. */
static void members(struct again *a, const struct pickle_value *v, bool *own, bool *category)
{
	*own = *category = false;
	for (size_t i = 0; i < v->count; i++) {
		const struct pickle_value *key = pickle_at(&a->from, v->items[2 * i]);
		const struct pickle_value *value = pickle_at(&a->from, v->items[2 * i + 1]);

		if (pickle_is(key, "user_metadata") && is_free_text(value))
			continue;
		*own |= pickle_is(key, "user_metadata");
		*category |= pickle_is(key, "category");
		pickle_copy(&a->copy, key);
		pickle_copy(&a->copy, value);
	}
}

static void write_entry(struct again *a, struct classes *c, const struct pickle_value *e)
{
	const struct pickle_value *action = pickle_text(&a->from, e, "action");
	int class = class_of_entry(a, c, e);
	bool own, category;

	if (e->type != PICKLE_DICT) {
		pickle_copy(&a->copy, e);
		return;
	}
	pickler_dict(&a->p);
	members(a, e, &own, &category);
	if (!own)
		export_torch_class(&a->p, class);
	if (!category)
		export_torch_category(&a->p, &a->named, pickle_is(action, "alloc") ? "alloc" : "",
				      class);
	pickler_dict_end(&a->p);
}

static void write_block(struct again *a, const struct classes *c, const struct pickle_value *v,
			uint64_t addr)
{
	const struct pickle_value *state = pickle_text(&a->from, v, "state");
	bool live = pickle_is(state, "active_allocated"), own, category;

	if (v->type != PICKLE_DICT) {
		pickle_copy(&a->copy, v);
		return;
	}
	pickler_dict(&a->p);
	members(a, v, &own, &category);
	if (!own)
		export_torch_class(&a->p, live ? class_at(&c->end, addr) : -1);
	pickler_dict_end(&a->p);
}

static void write_blocks(struct again *a, const struct pickle_value *s,
			 const struct pickle_value *blocks)
{
	uint64_t device = pickle_number(&a->from, s, "device");
	uint64_t addr = pickle_number(&a->from, s, "address");

	pickler_list(&a->p);
	for (uint32_t i = 0; i < blocks->count; i++) {
		const struct pickle_value *v = pickle_item(&a->from, blocks, i);

		if (pickle_get(&a->from, v, "address"))
			addr = pickle_number(&a->from, v, "address");
		pickler_next(&a->p, i);
		write_block(a, &a->devices[device < MODEL_DEVICES ? device : 0], v, addr);
		addr += pickle_number(&a->from, v, "size");
	}
	pickler_list_end(&a->p, blocks->count);
}

static void write_segment(struct again *a, const struct pickle_value *s)
{
	if (s->type != PICKLE_DICT) {
		pickle_copy(&a->copy, s);
		return;
	}
	pickler_dict(&a->p);
	for (size_t i = 0; i < s->count; i++) {
		const struct pickle_value *key = pickle_at(&a->from, s->items[2 * i]);
		const struct pickle_value *value = pickle_at(&a->from, s->items[2 * i + 1]);

		pickle_copy(&a->copy, key);
		if (pickle_is(key, "blocks") && value->type == PICKLE_LIST)
			write_blocks(a, s, value);
		else
			pickle_copy(&a->copy, value);
	}
	pickler_dict_end(&a->p);
}

static void write_segments(struct again *a, const struct pickle_value *segments)
{
	pickler_list(&a->p);
	for (uint32_t i = 0; i < segments->count; i++) {
		pickler_next(&a->p, i);
		write_segment(a, pickle_item(&a->from, segments, i));
	}
	pickler_list_end(&a->p, segments->count);
}

static void write_trace(struct again *a, struct classes *c, const struct pickle_value *trace)
{
	if (trace->type != PICKLE_LIST) {
		pickle_copy(&a->copy, trace);
		return;
	}
	pickler_list(&a->p);
	for (uint32_t i = 0; i < trace->count; i++) {
		pickler_next(&a->p, i);
		write_entry(a, c, pickle_item(&a->from, trace, i));
	}
	pickler_list_end(&a->p, trace->count);
}

static void write_traces(struct again *a, const struct pickle_value *traces)
{
	pickler_list(&a->p);
	for (uint32_t d = 0; d < traces->count; d++) {
		pickler_next(&a->p, d);
		write_trace(a, &a->devices[d < MODEL_DEVICES ? d : 0],
			    pickle_item(&a->from, traces, d));
	}
	pickler_list_end(&a->p, traces->count);
}

/* The oldest snapshots were the list of segments alone; readers of files want the dictionary. */
static void write_root(struct again *a, const struct pickle_value *root)
{
	bool traces = false;

	pickler_dict(&a->p);
	for (size_t i = 0; root->type == PICKLE_DICT && i < root->count; i++) {
		const struct pickle_value *key = pickle_at(&a->from, root->items[2 * i]);
		const struct pickle_value *value = pickle_at(&a->from, root->items[2 * i + 1]);

		traces |= pickle_is(key, "device_traces");
		pickle_copy(&a->copy, key);
		if (pickle_is(key, "segments") && value->type == PICKLE_LIST)
			write_segments(a, value);
		else if (pickle_is(key, "device_traces") && value->type == PICKLE_LIST)
			write_traces(a, value);
		else
			pickle_copy(&a->copy, value);
	}
	if (root->type == PICKLE_LIST) {
		pickler_word(&a->p, "segments");
		write_segments(a, root);
	}
	if (!traces) {
		pickler_word(&a->p, "device_traces");
		pickler_list(&a->p);
		pickler_list_end(&a->p, 0);
	}
	pickler_dict_end(&a->p);
}

static void release(struct again *a)
{
	for (int d = 0; d < MODEL_DEVICES; d++) {
		struct classes *c = &a->devices[d];

		free(c->seqs);
		map_free(&c->end);
		map_free(&c->now);
	}
	free(a->devices);
	map_free(&a->births);
	pickle_free(&a->from);
}

int export_torch_again(struct export *x, const struct torch_source *s)
{
	struct again a = { .x = x };
	int rc;

	if (!pickle_read(&a.from, s->bytes, s->len)) {
		rc = say_error(EXIT_UNREADABLE, "%s: the snapshot in it cannot be read: %s",
			       x->recording->path, a.from.error);
		pickle_free(&a.from);
		return rc;
	}
	a.devices = need_new(MODEL_DEVICES * sizeof(*a.devices));
	export_series(x, &(struct series_sink){ .life = on_life, .ctx = &a });
	pickler_start(&a.p, x->f);
	pickle_copy_start(&a.copy, &a.from, &a.p);
	write_root(&a, pickle_at(&a.from, a.from.root));
	pickle_copy_end(&a.copy);
	pickler_stop(&a.p);
	release(&a);
	return 0;
}
