/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot has the state at the end and the latest entries of a trace, whose beginning might be
 * lost. Undoing the entries from the last to the first gives the state before them.
 */
#include "import_parts.h"

enum import_action import_action(const struct import *im, const struct pickle_value *entry)
{
	static const char *const names[] = {
		"",
#define ACTION(name) #name,
#include "import_actions.def"
	};
	const struct pickle_value *v = pickle_text(&im->p, entry, "action");

	for (unsigned i = 1; v && i < sizeof(names) / sizeof(names[0]); i++)
		if (pickle_is(v, names[i]))
			return i;
	return ACTION_OTHER;
}

static struct block *put(struct tree *t, uint64_t addr, uint64_t size, uint64_t asked)
{
	struct block *b = tree_find(t, addr);

	if (!b)
		b = tree_insert(t, addr);
	b->size = size;
	b->handle = asked;
	b->mark = 0;
	return b;
}

/* Until PyTorch 2.0 a block's frames were in its history, the latest first. */
static const struct pickle_value *frames_of(const struct import *im, const struct pickle_value *b)
{
	const struct pickle_value *frames = pickle_list(&im->p, b, "frames");
	const struct pickle_value *history = pickle_list(&im->p, b, "history");

	return frames ? frames : pickle_list(&im->p, pickle_item(&im->p, history, 0), "frames");
}

static uint64_t asked_of(const struct import *im, const struct pickle_value *b)
{
	const struct pickle_value *history = pickle_list(&im->p, b, "history");
	uint64_t asked = pickle_number(&im->p, b, "requested_size");

	if (!asked)
		asked = pickle_number(&im->p, pickle_item(&im->p, history, 0), "real_size");
	return asked ? asked : pickle_number(&im->p, b, "size");
}

static void read_block(struct import *im, struct import_device *d, const struct pickle_value *v,
		       uint64_t addr, uint64_t stream)
{
	const struct pickle_value *state = pickle_text(&im->p, v, "state");
	uint64_t size = pickle_number(&im->p, v, "size");
	bool live = pickle_is(state, "active_allocated");
	const struct pickle_value *frames;
	struct block *b;

	if (!live && !pickle_is(state, "active_pending_free") &&
	    !pickle_is(state, "active_awaiting_free"))
		return;
	b = put(&d->blocks, addr, size, asked_of(im, v));
	b->stream = stream;
	b->mark = !live;
	if (!live)
		return;
	b->stack = import_stack(im, frames = frames_of(im, v)).id;
	import_sizes_look(im, b->handle, size);
	put(&d->end, addr, size, b->handle)->seq =
		b->stack ? 1 + (uint64_t)(frames - im->p.values) : 0;
}

const struct pickle_value *import_frames_at_end(const struct import *im,
						const struct import_device *d, uint64_t addr)
{
	const struct block *b = tree_find(&d->end, addr);

	return b && b->seq ? &im->p.values[b->seq - 1] : NULL;
}

static uint64_t number_in(const struct import *im, const struct pickle_value *list, uint32_t i)
{
	const struct pickle_value *v = pickle_item(&im->p, list, i);

	return v && v->type == PICKLE_INT ? (uint64_t)v->number : 0;
}

/* Reads the id of a segment's pool; 0, 0 is the common pool. */
static void read_pool(struct import *im, struct import_device *d, const struct pickle_value *s,
		      uint64_t addr, uint64_t size)
{
	const struct pickle_value *id = pickle_get(&im->p, s, "segment_pool_id");
	uint64_t first = number_in(im, id, 0);
	uint64_t second = number_in(im, id, 1);
	struct block *b;

	if (!first && !second)
		return;
	b = tree_insert(&d->pools, addr);
	b->size = size;
	b->seq = first;
	b->handle = second;
}

static void read_segment(struct import *im, struct import_device *d, const struct pickle_value *s)
{
	const struct pickle_value *blocks = pickle_list(&im->p, s, "blocks"), *v;
	uint64_t addr = pickle_number(&im->p, s, "address"), next = addr;
	uint64_t size = pickle_number(&im->p, s, "total_size");
	uint64_t stream = pickle_number(&im->p, s, "stream");
	bool expandable = pickle_number(&im->p, s, "is_expandable");
	struct block *b;

	d->seen = d->written = true;
	read_pool(im, d, s, addr, size);
	ranges_add(&d->segments, addr, size, expandable);
	b = tree_find(&d->segments, addr);
	if (b) {
		b->stream = stream;
		b->stack = import_stack(im, pickle_list(&im->p, s, "frames")).id;
	}
	for (uint32_t i = 0; (v = pickle_item(&im->p, blocks, i)) && import_visit(im); i++) {
		if (pickle_get(&im->p, v, "address"))
			next = pickle_number(&im->p, v, "address");
		read_block(im, d, v, next, stream);
		next += pickle_number(&im->p, v, "size");
	}
}

bool import_read_segments(struct import *im, const struct pickle_value *segments)
{
	const struct pickle_value *s;

	for (uint32_t i = 0; (s = pickle_item(&im->p, segments, i)) && import_visit(im); i++) {
		uint64_t device = pickle_number(&im->p, s, "device");

		if (!pickle_list(&im->p, s, "blocks")) {
			im->error = "a segment without blocks: not a memory snapshot of PyTorch";
			return false;
		}
		if (device >= IMPORT_DEVICES) {
			im->error = "a segment of a device with a number above 255";
			return false;
		}
		read_segment(im, &im->devices[device], s);
	}
	return !im->error;
}

static void undo_alloc(struct import_device *d, uint32_t index, uint64_t addr)
{
	struct block *b = tree_find(&d->blocks, addr);

	if (!b)
		return;
	d->exact[index] = b->size;
	tree_remove(&d->blocks, addr);
}

static void undo_free(struct import_device *d, uint64_t addr, uint64_t asked, uint64_t stream,
		      bool pending)
{
	struct block *b = tree_find(&d->blocks, addr);

	if (!b || !b->mark)
		b = put(&d->blocks, addr, 0, asked);
	b->stream = stream;
	b->mark = pending;
}

static void undo(struct import *im, struct import_device *d, uint32_t index,
		 const struct pickle_value *e)
{
	uint64_t addr = pickle_number(&im->p, e, "addr"), size = pickle_number(&im->p, e, "size");
	uint64_t stream = pickle_number(&im->p, e, "stream");
	enum import_action action = import_action(im, e);

	if (action == ACTION_alloc)
		undo_alloc(d, index, addr);
	else if (action == ACTION_free_requested)
		undo_free(d, addr, size, stream, false);
	else if (action == ACTION_free_completed)
		undo_free(d, addr, size, stream, !d->no_requests);
	else if (action == ACTION_segment_alloc || action == ACTION_segment_map)
		ranges_cut(&d->segments, addr, size);
	else if (action == ACTION_segment_free || action == ACTION_segment_unmap)
		ranges_add(&d->segments, addr, size, action == ACTION_segment_unmap);
}

/* Finds which actions occur in the trace, and which of them have frames. */
static void count_actions(struct import *im, struct import_device *d)
{
	uint64_t requests = 0, completions = 0, whole = 0;
	struct map born = { 0 };

	for (uint32_t i = 0; i < d->trace->count && import_visit(im); i++) {
		const struct pickle_value *e = pickle_item(&im->p, d->trace, i);
		enum import_action a = import_action(im, e);
		uint32_t stack = import_stack(im, pickle_list(&im->p, e, "frames")).id;

		uint64_t addr = pickle_number(&im->p, e, "addr");

		if (a == ACTION_alloc)
			map_put(&born, addr, NULL);
		requests += a == ACTION_free_requested;
		completions += a == ACTION_free_completed;
		if (a == ACTION_free_completed && map_get(&born, addr))
			whole++;
		if (stack != 0)
			im->any_frames[a] = true;
	}
	/* a request can be lost with the beginning, but not if the trace has the allocation */
	d->no_requests = !requests && whole;
	d->no_completions = !completions;
	map_free(&born);
}

/* Computes the sizes of blocks that were allocated before the trace and freed in it, by address. */
static void find_sizes(struct import *im, struct import_device *d)
{
	TREE_EACH (&d->blocks, b) {
		if (b->size)
			continue;
		b->size = import_block_size(im, d, b->addr, b->handle);
		im->guessed++;
	}
}

void import_rewind(struct import *im, struct import_device *d)
{
	if (!d->trace || !d->trace->count)
		return;
	d->seen = true;
	d->exact = need_new((size_t)d->trace->count * sizeof(*d->exact));
	count_actions(im, d);
	for (uint32_t i = d->trace->count; i-- > 0 && import_visit(im);)
		undo(im, d, i, pickle_item(&im->p, d->trace, i));
	find_sizes(im, d);
}
