/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the events of a device: its state before the trace, then each entry of the trace. */
#include "import_parts.h"
#include "../../format/record.h"

static void cuda_event(struct import *im, unsigned kind, int device, uint64_t addr, uint64_t size,
		       const char *name, struct gmt_event more)
{
	more.kind = kind;
	more.device = device;
	more.addr = addr;
	more.size = size;
	more.name = import_string(im, name, strlen(name));
	more.flags |= GMT_FLAG_FRAMEWORK;
	if (!more.thread)
		more.thread = THREAD_MAIN;
	import_event(im, more);
}

/* Maps a range to physical memory of its own. */
static void map_piece(struct import *im, int device, uint64_t addr, uint64_t size,
		      struct gmt_event more)
{
	struct block *b;

	if (!size || tree_find(&im->devices[device].pieces, addr))
		return;
	b = tree_insert(&im->devices[device].pieces, addr);
	b->size = size;
	b->handle = ++im->handles;
	more.arg0 = GMT_MEM_PHYSICAL;
	cuda_event(im, GMT_PHYS_CREATE, device, b->handle, size, "cuMemCreate", more);
	more.arg0 = b->handle;
	cuda_event(im, GMT_MAP, device, addr, size, "cuMemMap", more);
}

static void unmap_piece(struct import *im, int device, uint64_t addr, struct gmt_event more)
{
	struct tree *pieces = &im->devices[device].pieces;
	const struct block b = *tree_find(pieces, addr);

	cuda_event(im, GMT_UNMAP, device, b.addr, b.size, "cuMemUnmap", more);
	cuda_event(im, GMT_PHYS_RELEASE, device, b.handle, 0, "cuMemRelease", more);
	tree_remove(pieces, addr);
}

/* Unmaps a range. Of a mapping that lies partly outside, the rest is mapped again. */
static void unmap(struct import *im, int device, uint64_t addr, uint64_t size,
		  struct gmt_event more)
{
	struct tree *pieces = &im->devices[device].pieces;
	const struct block *b = tree_enclosing(pieces, addr);
	uint64_t end = addr + size;

	if (!b)
		b = tree_from(pieces, addr);
	while (b && b->addr < end) {
		uint64_t from = b->addr, to = b->addr + b->size;

		unmap_piece(im, device, from, more);
		if (from < addr)
			map_piece(im, device, from, addr - from, more);
		if (to > end)
			map_piece(im, device, end, to - end, more);
		b = tree_from(pieces, to < end ? to : end);
	}
}

static void reserve(struct import *im, int device, uint64_t addr, uint64_t size, bool expandable,
		    struct gmt_event more)
{
	im->devices[device].reserved += size;
	if (expandable) {
		map_piece(im, device, addr, size, more);
		return;
	}
	more.arg0 = GMT_MEM_DEVICE;
	cuda_event(im, GMT_MEM_ALLOC, device, addr, size, "cudaMalloc", more);
}

static void release(struct import *im, int device, uint64_t addr, uint64_t size, bool expandable,
		    struct gmt_event more)
{
	struct import_device *d = &im->devices[device];

	d->reserved -= size < d->reserved ? size : d->reserved;
	if (expandable) {
		unmap(im, device, addr, size, more);
		return;
	}
	more.arg0 = GMT_MEM_DEVICE;
	cuda_event(im, GMT_MEM_FREE, device, addr, size, "cudaFree", more);
}

static void block_event(struct import *im, unsigned kind, int device, const struct block *b,
			struct gmt_event more)
{
	struct import_device *d = &im->devices[device];

	if (kind == GMT_BLOCK_ALLOC) {
		d->allocated += b->size;
		d->asked += b->handle;
		if (d->asked > d->asked_peak)
			d->asked_peak = d->asked;
		if (d->allocated > d->peak) {
			d->peak = d->allocated;
			d->lost = d->allocated > d->asked ? d->allocated - d->asked : 0;
		}
	} else {
		d->allocated -= b->size;
		d->asked -= b->handle;
	}
	more.kind = kind;
	more.device = device;
	more.addr = b->addr;
	more.size = b->size;
	more.stream = b->stream;
	more.arg0 = d->allocated;
	more.arg1 = d->reserved;
	import_event(im, more);
}

static void reuse_event(struct import *im, unsigned kind, int device, const struct block *b)
{
	import_event(im, (struct gmt_event){ .kind = kind,
					     .thread = THREAD_MAIN,
					     .device = device,
					     .addr = b->addr,
					     .size = b->size,
					     .stream = b->stream });
}

/* Whether an entry completes a block's free. If it follows the request, no stream had to wait. */
static bool completes(const struct import *im, const struct import_device *d, uint32_t index,
		      uint64_t addr)
{
	const struct pickle_value *e = pickle_item(&im->p, d->trace, index);

	return import_action(im, e) == ACTION_free_completed &&
	       pickle_number(&im->p, e, "addr") == addr;
}

void import_begin_device(struct import *im, int device)
{
	struct import_device *d = &im->devices[device];

	TREE_EACH (&d->segments, s)
		reserve(im, device, s->addr, s->size, s->mark,
			(struct gmt_event){
				.stream = s->stream, .stack = s->stack, .flags = GMT_FLAG_LATE });
	TREE_EACH (&d->blocks, b) {
		if (b->mark) { /* if entry 0 completes the free, only the request is missing */
			b->mark = completes(im, d, 0, b->addr) ? BLOCK_FREED : BLOCK_WAITS;
			if (b->mark == BLOCK_WAITS)
				reuse_event(im, GMT_REUSE_WAIT, device, b);
			continue;
		}
		block_event(im, GMT_BLOCK_ALLOC, device, b,
			    (struct gmt_event){ .stack = b->stack,
						.thread = THREAD_MAIN,
						.flags = GMT_FLAG_LATE });
		im->late_blocks++;
		im->late_bytes += b->size;
	}
}

/*
 * Whether the event is of a thread without Python. If only Python frames were recorded, the threads
 * of backward have none. Whether failed requests have frames is judged by successful ones, because
 * there might be only one failure.
 */
static bool is_bare(const struct import *im, enum import_action action, uint32_t stack)
{
	enum import_action like = action == ACTION_oom ? ACTION_alloc : action;

	return !stack && im->any_python && !im->any_native && im->any_frames[like] &&
	       (like == ACTION_alloc || like == ACTION_free_requested);
}

/* The stack of an entry, or else of the block that it allocated, if that is live at the end. */
static struct import_stack stack_of(struct import *im, const struct import_device *d,
				    uint32_t index, const struct pickle_value *entry)
{
	struct import_stack s = import_stack(im, pickle_list(&im->p, entry, "frames"));

	if (s.id || !d->exact[index])
		return s;
	return import_stack(im, import_frames_at_end(im, d, pickle_number(&im->p, entry, "addr")));
}

/* Finds the thread and the backward node by the frames, because a snapshot names no threads. */
static struct gmt_event by_whom(struct import *im, int device, enum import_action action,
				struct import_stack s)
{
	struct gmt_event e = { .stack = s.id, .thread = THREAD_MAIN, .name = s.node };

	if (is_bare(im, action, s.id)) {
		im->bare++;
		s.engine = true;
		e.flags = GMT_FLAG_NO_PYTHON;
	}
	if (s.engine)
		e.thread = THREAD_ENGINE + (unsigned)device;
	if (s.node && s.node != im->evaluating)
		im->evaluations++;
	im->evaluating = s.node;
	e.scope = s.node ? (uint32_t)im->evaluations : 0;
	return e;
}

static void entry_alloc(struct import *im, int device, uint32_t index, uint64_t addr,
			uint64_t asked, struct gmt_event more)
{
	struct import_device *d = &im->devices[device];
	struct block *b = tree_find(&d->blocks, addr);
	uint64_t size = d->exact[index];

	if (b && !b->mark) {
		block_event(im, GMT_BLOCK_FREE, device, b, more);
		im->free_missing++;
	}
	if (b)
		tree_remove(&d->blocks, addr);
	if (!size) {
		size = import_block_size(im, d, addr, asked);
		im->guessed++;
	}
	b = tree_insert(&d->blocks, addr);
	b->size = size;
	b->handle = asked;
	b->stream = more.stream;
	block_event(im, GMT_BLOCK_ALLOC, device, b, more);
}

static void entry_free(struct import *im, int device, uint32_t index, uint64_t addr, bool completed,
		       struct gmt_event more)
{
	struct import_device *d = &im->devices[device];
	struct block *b = tree_find(&d->blocks, addr);

	if (!b) {
		if (!completed)
			im->alloc_missing++;
		return;
	}
	if (!b->mark && (!completed || d->no_requests)) {
		block_event(im, GMT_BLOCK_FREE, device, b, more);
		b->mark = d->no_requests || d->no_completions || completes(im, d, index + 1, addr)
				  ? BLOCK_FREED
				  : BLOCK_WAITS;
		if (b->mark == BLOCK_WAITS)
			reuse_event(im, GMT_REUSE_WAIT, device, b);
	}
	if (!b->mark || !(completed || d->no_completions))
		return;
	if (b->mark == BLOCK_WAITS)
		reuse_event(im, GMT_REUSE_READY, device, b);
	tree_remove(&d->blocks, addr);
}

static void entry_oom(struct import *im, int device, const struct pickle_value *v, uint64_t size,
		      struct gmt_event more)
{
	const struct import_device *d = &im->devices[device];
	uint64_t left = pickle_get(&im->p, v, "device_free")
				? pickle_number(&im->p, v, "device_free")
				: pickle_number(&im->p, v, "addr");

	import_event(im, (struct gmt_event){ .kind = GMT_MEMINFO,
					     .device = device,
					     .thread = more.thread,
					     .arg0 = left });
	more.kind = GMT_BLOCK_OOM;
	more.device = device;
	more.size = size;
	more.arg0 = d->allocated;
	more.arg1 = d->reserved;
	import_event(im, more);
}

static void entry_mark(struct import *im, const struct pickle_value *v, const char *name)
{
	const struct pickle_value *text = pickle_text(&im->p, v, "user_metadata");
	bool own = text && text->count;

	import_event(im, (struct gmt_event){
				 .kind = GMT_MARK,
				 .thread = THREAD_MAIN,
				 .device = -1,
				 .arg1 = GMT_RANGE_FRAMEWORK,
				 .name = own ? import_string(im, text->text, text->count)
					     : import_string(im, name, strlen(name)),
			 });
}

void import_entry(struct import *im, int device, uint32_t index)
{
	struct import_device *d = &im->devices[device];
	const struct pickle_value *v = pickle_item(&im->p, d->trace, index);
	uint64_t addr = pickle_number(&im->p, v, "addr"), size = pickle_number(&im->p, v, "size");
	enum import_action action = import_action(im, v);
	struct gmt_event more = by_whom(im, device, action, stack_of(im, d, index, v));
	bool expandable = action == ACTION_segment_map || action == ACTION_segment_unmap;

	more.stream = pickle_number(&im->p, v, "stream");
	if (action == ACTION_alloc && more.thread == THREAD_MAIN)
		import_metadata(im, pickle_text(&im->p, v, "user_metadata"));
	if (action == ACTION_alloc)
		entry_alloc(im, device, index, addr, size, more);
	else if (action == ACTION_free_requested || action == ACTION_free_completed)
		entry_free(im, device, index, addr, action == ACTION_free_completed, more);
	else if (action == ACTION_segment_alloc || action == ACTION_segment_map) {
		ranges_add(&d->segments, addr, size, expandable);
		reserve(im, device, addr, size, expandable, more);
	} else if (action == ACTION_segment_free || action == ACTION_segment_unmap) {
		ranges_cut(&d->segments, addr, size);
		release(im, device, addr, size, expandable, more);
	} else if (action == ACTION_oom)
		entry_oom(im, device, v, size, more);
	else if (action == ACTION_snapshot || action == ACTION_annotate)
		entry_mark(im, v, action == ACTION_snapshot ? "snapshot" : "annotate");
	else
		im->unknown++;
}

/* Writes missing frees and allocations, so that the blocks at the end are the snapshot's. */
void import_finish_device(struct import *im, int device)
{
	struct import_device *d = &im->devices[device];
	const struct gmt_event more = { .thread = THREAD_MAIN, .flags = GMT_FLAG_LATE };

	TREE_EACH (&d->pools, s)
		import_event(im, (struct gmt_event){ .kind = GMT_SEGMENT_POOL,
						     .thread = THREAD_MAIN,
						     .device = device,
						     .addr = s->addr,
						     .size = s->size,
						     .arg0 = s->seq,
						     .arg1 = s->handle });
	if (!d->written)
		return;
	TREE_EACH (&d->blocks, b)
		if (!b->mark && !tree_find(&d->end, b->addr)) {
			block_event(im, GMT_BLOCK_FREE, device, b, more);
			im->free_missing++;
		}
	TREE_EACH (&d->end, b) {
		const struct block *now = tree_find(&d->blocks, b->addr);

		if (now && !now->mark)
			continue;
		block_event(im, GMT_BLOCK_ALLOC, device, b, more);
		im->alloc_missing++;
	}
}
