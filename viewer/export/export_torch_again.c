/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the snapshot from which a recording was converted, with every member as it was, also those
 * that no event stores. Only classes are added, where the program set no metadata of its own. The
 * nth allocation in a device's trace is its nth recorded allocation. A free is found by its
 * address.
 */
#include "../../format/record.h"
#include "../recording/import.h"
#include "../recording/pickle.h"
#include "../recording/pickle_write.h"
#include "export_torch.h"

/*
 * Copies values from one pickle into another, each shared list or dictionary once. A value that
 * contains itself becomes None, and so does one that is nested deeper than DEPTH.
 */

struct pickle_copy {
	const struct pickle *from;
	struct pickler *to;
	uint32_t *uses; /* of each value: references in lists and dictionaries */
	struct map kept;
	unsigned depth;
};

#define DEPTH 100
#define OPEN  UINT32_MAX /* it is being written: a reference to it is inside of it */

static void pickle_copy_start(struct pickle_copy *c, const struct pickle *from, struct pickler *to)
{
	*c = (struct pickle_copy){ .from = from, .to = to };
	c->uses = need_new((from->count + 1) * sizeof(*c->uses));
	FOR_EACH (const struct pickle_value, v, from->values, from->count) {
		size_t n = v->type == PICKLE_LIST   ? v->count
			   : v->type == PICKLE_DICT ? 2 * (size_t)v->count
						    : 0;

		for (size_t k = 0; k < n; k++)
			c->uses[v->items[k]]++;
	}
	c->uses[from->root]++;
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

/* The classes of a device's blocks. */
struct classes {
	uint64_t *seqs; /* events of allocations in the trace, in order */
	size_t count, room, next;
	struct map now, end; /* address -> class + 1: during the trace; after it */
};

struct again {
	struct export *x;
	struct pickle from;
	struct pickler p;
	struct pickle_copy copy;
	struct classes *devices;
	struct map births; /* seq -> class + 1 */
	bool named;
	struct classes *device; /* of the current trace or segment */
	uint64_t addr;		/* of the next block in the segment */
};

void export_torch_class(struct pickler *p, int class)
{
	char text[64] = "";

	if (class >= 0)
		snprintf(text, sizeof(text), "%s" OWN_METADATA, categories[class].words);
	pickler_word_at(p, "user_metadata", text);
}

void export_torch_category(struct pickler *p, bool *named, const char *action, int class)
{
	bool birth = !strcmp(action, "alloc");

	if (birth && (!*named || class < 0))
		return;
	*named = true;
	pickler_word_at(p, "category", birth ? categories[class].words : "unknown");
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
	const struct lives *l = &a->x->timeline.model.lives;
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

static int class_of_entry(struct again *a, const struct pickle_value *action,
			  const struct pickle_value *e)
{
	struct classes *c = a->device;
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
	return v->type == PICKLE_NONE || pickle_is(v, "") || pickle_ends(v, OWN_METADATA);
}

/* Copies a dictionary, and adds its class if it has no metadata. action: of an entry, or NULL. */
static void write_with_class(struct again *a, const struct pickle_value *v, int class,
			     const char *action)
{
	bool own = false, category = !action;

	if (v->type != PICKLE_DICT) {
		pickle_copy(&a->copy, v);
		return;
	}
	pickler_dict(&a->p);
	for (size_t i = 0; i < v->count; i++) {
		const struct pickle_value *key = pickle_at(&a->from, v->items[2 * i]);
		const struct pickle_value *value = pickle_at(&a->from, v->items[2 * i + 1]);

		if (pickle_is(key, "user_metadata") && is_free_text(value))
			continue;
		own |= pickle_is(key, "user_metadata");
		category |= pickle_is(key, "category");
		pickle_copy(&a->copy, key);
		pickle_copy(&a->copy, value);
	}
	if (!own)
		export_torch_class(&a->p, class);
	if (!category)
		export_torch_category(&a->p, &a->named, action, class);
	pickler_dict_end(&a->p);
}

/* Writes a value with its classes. i: its index in its list. */
typedef void write_value(struct again *a, const struct pickle_value *v, uint32_t i);

static void write_each(struct again *a, const struct pickle_value *list, write_value *write)
{
	if (list->type != PICKLE_LIST) {
		pickle_copy(&a->copy, list);
		return;
	}
	pickler_list(&a->p);
	for (uint32_t i = 0; i < list->count; i++) {
		pickler_next(&a->p, i);
		write(a, pickle_item(&a->from, list, i), i);
	}
	pickler_list_end(&a->p, list->count);
}

static void write_entry(struct again *a, const struct pickle_value *v, UNUSED uint32_t i)
{
	const struct pickle_value *action = pickle_text(&a->from, v, "action");

	write_with_class(a, v, class_of_entry(a, action, v),
			 pickle_is(action, "alloc") ? "alloc" : "");
}

static void write_block(struct again *a, const struct pickle_value *v, UNUSED uint32_t i)
{
	bool live = pickle_is(pickle_text(&a->from, v, "state"), "active_allocated");

	if (pickle_get(&a->from, v, "address"))
		a->addr = pickle_number(&a->from, v, "address");
	write_with_class(a, v, live ? class_at(&a->device->end, a->addr) : -1, NULL);
	a->addr += pickle_number(&a->from, v, "size");
}

static void choose_device(struct again *a, uint64_t device)
{
	a->device = &a->devices[device < MODEL_DEVICES ? device : 0];
}

static void write_trace(struct again *a, const struct pickle_value *v, uint32_t i)
{
	choose_device(a, i);
	write_each(a, v, write_entry);
}

struct list {
	const char *name;
	write_value *write; /* writes an element */
};

/* Writes the members of a dictionary; elements of `lists` with their classes. */
static void write_members(struct again *a, const struct pickle_value *v, const struct list lists[2])
{
	for (size_t i = 0; i < v->count; i++) {
		const struct pickle_value *key = pickle_at(&a->from, v->items[2 * i]);
		const struct pickle_value *value = pickle_at(&a->from, v->items[2 * i + 1]);
		const struct list *list = pickle_is(key, lists->name) ? lists : &lists[1];

		pickle_copy(&a->copy, key);
		if (list->name && pickle_is(key, list->name))
			write_each(a, value, list->write);
		else
			pickle_copy(&a->copy, value);
	}
}

static void write_segment(struct again *a, const struct pickle_value *v, UNUSED uint32_t i)
{
	static const struct list lists[2] = { { "blocks", write_block } };

	if (v->type != PICKLE_DICT) {
		pickle_copy(&a->copy, v);
		return;
	}
	choose_device(a, pickle_number(&a->from, v, "device"));
	a->addr = pickle_number(&a->from, v, "address");
	pickler_dict(&a->p);
	write_members(a, v, lists);
	pickler_dict_end(&a->p);
}

/* The oldest snapshots are the list of segments alone. Readers of files expect a dictionary. */
static void write_root(struct again *a, const struct pickle_value *root)
{
	static const struct list lists[2] = { { "segments", write_segment },
					      { "device_traces", write_trace } };

	pickler_dict(&a->p);
	if (root->type == PICKLE_DICT) {
		write_members(a, root, lists);
	} else if (root->type == PICKLE_LIST) {
		pickler_word(&a->p, "segments");
		write_each(a, root, write_segment);
	}
	if (!pickle_get(&a->from, root, "device_traces")) {
		pickler_word(&a->p, "device_traces");
		pickler_list(&a->p);
		pickler_list_end(&a->p, 0);
	}
	pickler_dict_end(&a->p);
}

static void release(struct again *a)
{
	FOR_EACH (struct classes, c, a->devices, MODEL_DEVICES) {
		free(c->seqs);
		map_free(&c->end);
		map_free(&c->now);
	}
	free(a->devices);
	map_free(&a->births);
	map_free(&a->copy.kept);
	free(a->copy.uses);
	pickle_free(&a->from);
}

int export_torch_again(struct export *x, const struct torch_source *s)
{
	struct again a = { .x = x };
	int rc;

	if (!pickle_read(&a.from, s->bytes, s->len)) {
		rc = say_unreadable("%s: the snapshot in it cannot be read: %s", x->recording->path,
				    a.from.error);
		pickle_free(&a.from);
		return rc;
	}
	a.devices = need_new(MODEL_DEVICES * sizeof(*a.devices));
	export_series(x, &(struct series_sink){ .life = on_life, .ctx = &a });
	pickler_start(&a.p, x->f);
	pickle_copy_start(&a.copy, &a.from, &a.p);
	write_root(&a, pickle_at(&a.from, a.from.root));
	pickler_stop(&a.p);
	release(&a);
	return 0;
}
