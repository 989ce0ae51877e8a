/* SPDX-License-Identifier: Apache-2.0 */
#include "lake_recording.h"

#include <stdlib.h>
#include <string.h>

#include "../base/need.h"
#include "lake_cells.h"

/* ---- lines at the peak ---- */

/* Blocks of one class, line and modules. */
struct held {
	enum category category;
	struct owner owner;
	char *module;
	uint64_t bytes, blocks;
};

struct all_held {
	struct held *items;
	size_t count, room;
	struct map ids; /* class, stack and node -> item */
};

static uint32_t same_line(struct all_held *all, const struct held *h)
{
	for (size_t i = 0; i < all->count; i++) {
		const struct held *old = &all->items[i];

		if (old->category == h->category && owners_same(&old->owner, &h->owner) &&
		    !strcmp(old->module, h->module))
			return (uint32_t)i;
	}
	*need_item(all->items, all->count, all->room) = *h;
	all->items[all->count - 1].module = need_copy(h->module, strlen(h->module));
	return (uint32_t)all->count - 1;
}

static void hold(struct lake_rows *x, struct all_held *all, const struct block *b, unsigned class)
{
	uint64_t site = (uint64_t)b->stack << 32 | (b->memory ? 0 : b->name);
	uint32_t at = map_known(
		&all->ids, site * CATEGORIES + class,
		same_line(all, &(struct held){ .category = class,
					       .owner = owners_find(&x->timeline->owners, b),
					       .module = (char *)lake_module(x, b->stack) }));

	all->items[at].bytes += b->size;
	all->items[at].blocks++;
}

static int by_bytes(const void *a, const void *b)
{
	const struct held *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x->category < y->category ? -1 : x->category > y->category;
}

static void held_rows(struct lake_rows *x, const struct all_held *all)
{
	for (size_t i = 0; i < all->count; i++) {
		const struct held *h = &all->items[i];

		put_text(x->w, lines, class, category_name(h->category));
		put_owner(x->w, lines, &h->owner, h->module);
		put_int(x->w, lines, bytes, h->bytes);
		put_int(x->w, lines, blocks, h->blocks);
		lake_row(x->w, LAKE_lines);
	}
}

static void peak_rows(struct lake_rows *x, struct peak_answer *peak)
{
	const struct moment *mo = &peak->shot.moment;
	struct all_held all = { 0 };

	for (size_t i = 0; i < mo->count; i++)
		hold(x, &all, &mo->blocks[i], peak->shot.classes[i]);
	if (all.count)
		qsort(all.items, all.count, sizeof(*all.items), by_bytes);
	held_rows(x, &all);
	for (size_t i = 0; i < all.count; i++)
		free(all.items[i].module);
	free(all.items);
	map_free(&all.ids);
}

/* ---- all of them ---- */

static int small_tables(struct lake_writer *w, struct recording *r)
{
	struct timeline t = { 0 };
	struct lake_rows x = { .w = w, .recording = r, .timeline = &t };
	struct peak_answer peak = { 0 };
	int rc = timeline_open_any(&t, r), main;

	if (rc)
		return rc;
	main = t.device;
	lake_device_rows(&x);
	if (main >= 0) {
		timeline_look(&t, main);
		peak_find(&peak, &t);
		peak_rows(&x, &peak);
		lake_step_rows(&x);
	}
	lake_refusal_rows(&x);
	if (main >= 0)
		timeline_look(&t, main);
	t.device = main;
	lake_rank_row(&x, &peak);
	if (main >= 0)
		peak_free(&peak);
	timeline_close(&t);
	return 0;
}

int lake_recording_rows(struct lake_writer *w, const char *path)
{
	struct recording r;
	int rc = recording_open(&r, path);

	if (rc)
		return rc;
	w->root = defs_meta(&r.defs, "git.root").s;
	if (w->files[LAKE_ranks])
		rc = small_tables(w, &r);
	if (!rc && w->files[LAKE_allocations])
		rc = lake_allocation_rows(w, &r);
	if (!rc && w->files[LAKE_events])
		rc = lake_event_rows(w, &r);
	recording_close(&r);
	return rc;
}
