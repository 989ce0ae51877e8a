/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a trace of torch.profiler (Kineto, JSON) with [memory] events: each block of a GPU that was
 * allocated or freed, with the allocator's totals. One block stands for the memory from before the
 * trace that is not freed in it. Or reads its memory timeline: the bytes of each category at each
 * time. One block stands for a category, and the category's name for a stack.
 */
#include "../../format/record.h"
#include "../base/json.h"
#include "../base/unpack.h"
#include "import_parts.h"

#define EARLY_ADDR 4096		       /* of the block that stands for earlier memory */
#define LEVEL_ADDR (UINT64_C(1) << 40) /* distance between the blocks of two categories */
#define LEVELS	   8		       /* categories of a memory timeline */
#define LONGEST	   512
/* More than any device has; sums of a few do not overflow. */
#define MOST_BYTES (INT64_C(1) << 60)
#define MOST_TIME  (UINT64_C(1) << 53) /* microseconds, 285 years */

static const char *const levels[LEVELS] = { "PARAMETER",       "OPTIMIZER_STATE", "INPUT",
					    "TEMPORARY",       "ACTIVATION",	  "GRADIENT",
					    "AUTOGRAD_DETAIL", "Unknown" };

/* Whether it begins like a trace (an object with such a member) or a timeline (nested arrays). */
bool import_trace_starts(const void *data, size_t len)
{
	const char *s = data;
	size_t head = len < UNPACK_START ? len : UNPACK_START, space = 0;

	while (space < head && s[space] && strchr(" \t\r\n", s[space]))
		space++;
	if (head - space > 2 && !memcmp(s + space, "[[", 2))
		return true;
	return space < head && s[space] == '{' &&
	       (memmem(s, head, "\"schemaVersion\"", 15) || memmem(s, head, "\"traceEvents\"", 13));
}

static int64_t bytes_of(struct json number)
{
	int64_t n = json_signed(number);

	if (n > MOST_BYTES)
		return MOST_BYTES;
	return n < -MOST_BYTES ? -MOST_BYTES : n;
}

static uint64_t time_of(struct json number)
{
	double us = json_number(number);

	if (us < 0)
		return 0;
	return us < (double)MOST_TIME ? (uint64_t)us : MOST_TIME;
}

static bool is_memory(struct json event)
{
	return json_is(json_member(event, "name"), "[memory]") &&
	       json_unsigned(json_at(event, "args.Device Type")) == 1;
}

/* A range of the program. Without passes between them, those of optimizers are not steps. */
static bool is_mark(struct json event)
{
	char name[LONGEST];

	json_string(json_member(event, "name"), name, sizeof(name));
	return json_is(json_member(event, "cat"), "user_annotation") &&
	       strncmp(name, "Optimizer.", 10);
}

static void add_event(struct import *im, struct json event, uint64_t base, uint32_t i)
{
	uint64_t time = base + time_of(json_member(event, "ts"));
	uint64_t device = json_unsigned(json_at(event, "args.Device Id"));
	struct import_item item = { .time = time, .index = i, .what = ITEM_ENTRY };

	if (is_memory(event) && device < IMPORT_DEVICES) {
		item.device = (uint16_t)device;
		im->devices[device].traced = true;
		import_around_add(im, event, (struct json){ 0 }, i);
		import_add_item(im, item);
		im->entries++;
	} else if (is_mark(event)) {
		item.what = ITEM_BEGIN;
		import_add_item(im, item);
		item.what = ITEM_END;
		item.time += time_of(json_member(event, "dur"));
		import_add_item(im, item);
	} else {
		if (json_is(json_member(event, "ph"), "X"))
			import_around_add(im, event, json_member(event, "name"), i);
		return;
	}
	im->trace[i] = event;
}

static bool read_levels(struct import *im, struct json root)
{
	struct json times = json_first(root, NULL), rows = json_next(root, times, NULL);
	struct json t = json_first(times, NULL), row = json_first(rows, NULL);
	uint64_t last = 0;

	im->trace = need_new((json_count(rows) + 1) * sizeof(*im->trace));
	for (; t.s && json_count(row) == LEVELS + 1;
	     row = json_next(rows, row, NULL), t = json_next(times, t, NULL)) {
		im->trace[im->entries] = row;
		last = json_unsigned(t) > last ? json_unsigned(t) : last;
		import_add_item(im, (struct import_item){ .time = last,
							  .index = (uint32_t)im->entries++,
							  .what = ITEM_ENTRY });
	}
	if (!im->entries)
		im->error =
			"JSON, but no levels of a memory timeline: export_memory_timeline of "
			"torch.profiler writes them to a name that ends in .json, not .raw.json";
	return im->entries;
}

bool import_trace_read(struct import *im, const void *data, size_t len)
{
	struct json root = json_text(data, len), events = json_member(root, "traceEvents");
	uint64_t base = json_unsigned(json_member(root, "baseTimeNanoseconds")) / 1000;
	uint32_t i = 0;

	im->times = true;
	im->levels = !memchr(data, '{', len < UNPACK_START ? len : UNPACK_START);
	if (im->levels)
		return read_levels(im, root);
	im->trace = need_new((json_count(events) + 1) * sizeof(*im->trace));
	for (struct json e = json_first(events, NULL); e.s; e = json_next(events, e, NULL))
		add_event(im, e, base, i++);
	if (!im->entries)
		im->error = "a trace without memory of a GPU: torch.profiler records it with "
			    "profile_memory=True";
	return im->entries;
}

/* Writes the allocation of a block, or its free if `bytes` is negative. */
static void tell_block(struct import *im, uint16_t device, uint64_t addr, int64_t bytes,
		       uint64_t all, uint64_t reserved, struct gmt_event more)
{
	more.kind = bytes < 0 ? GMT_BLOCK_FREE : GMT_BLOCK_ALLOC;
	more.addr = addr;
	more.size = (uint64_t)(bytes < 0 ? -bytes : bytes);
	more.arg0 = all;
	more.arg1 = reserved;
	more.device = (int16_t)device;
	more.thread = more.thread ? more.thread : THREAD_MAIN;
	import_event(im, more);
}

/* The stack and thread of an event, found by the ranges around it. */
static struct gmt_event by_whom(struct import *im, const struct import_item *item)
{
	const uint32_t *at = map_get(&im->whose, item->index);
	struct import_around a = at ? im->around[*at] : (struct import_around){ 0 };

	return (struct gmt_event){
		.stack = a.stack.id,
		.name = a.stack.node,
		.scope = a.evaluation,
		.thread = a.stack.engine ? THREAD_ENGINE + item->device : THREAD_MAIN,
		.flags = a.stack.engine && !a.stack.python ? GMT_FLAG_NO_PYTHON : 0
	};
}

/* Writes a block that was allocated before the trace. */
static void tell_early(struct import *im, uint16_t device, uint64_t addr, uint64_t bytes)
{
	uint64_t *told = &im->devices[device].reserved;

	*told += bytes;
	tell_block(im, device, addr, (int64_t)bytes, *told, *told,
		   (struct gmt_event){ .flags = GMT_FLAG_LATE });
}

/* Whether the block of a [memory] event is alive; `bytes` is negative if the event frees it. */
static uint32_t *memory_of(struct import *im, const struct import_item *item, uint64_t *addr,
			   int64_t *bytes, bool *fresh)
{
	struct json args = json_member(im->trace[item->index], "args");

	*bytes = bytes_of(json_member(args, "Bytes"));
	*addr = json_unsigned(json_member(args, "Addr"));
	return map_put(&im->alive, map_hash(item->device, addr, sizeof(*addr)), fresh);
}

/* Writes the blocks that were allocated before the first event of each device. */
void import_trace_begin(struct import *im)
{
	import_around_find(im);
	FOR_EACH (const struct import_item, item, im->items, im->item_count) {
		struct import_device *d = &im->devices[item->device];
		int64_t all, bytes;
		uint64_t addr;
		uint32_t *known;
		bool fresh;

		if (item->what != ITEM_ENTRY || im->levels)
			continue;
		known = memory_of(im, item, &addr, &bytes, &fresh);
		all = bytes_of(json_at(im->trace[item->index], "args.Total Allocated"));
		if (!d->written && all > bytes)
			d->allocated = (uint64_t)(all - bytes);
		d->written = true;
		if (!fresh || bytes >= 0 || d->reserved + (uint64_t)-bytes > d->allocated)
			continue;
		*known = true; /* freed in the trace, and not allocated in it */
		tell_early(im, item->device, addr, (uint64_t)-bytes);
	}
	for (uint16_t i = 0; i < IMPORT_DEVICES; i++) {
		struct import_device *d = &im->devices[i];
		uint64_t left = d->allocated - d->reserved;

		if (left)
			tell_early(im, i, EARLY_ADDR, left);
		if (d->allocated)
			import_note(
				im,
				"the trace begins late: %" PRIu64
				" bytes of device %u were there before its first event; %" PRIu64
				" of them are not freed in it and count as one block",
				d->allocated, i, left);
	}
}

static void tell_memory(struct import *im, const struct import_item *item)
{
	struct json args = json_member(im->trace[item->index], "args");
	int64_t bytes;
	uint64_t addr;
	uint32_t *known = memory_of(im, item, &addr, &bytes, NULL);

	if (bytes > 0 || (bytes && *known))
		tell_block(im, item->device, addr, bytes,
			   json_unsigned(json_member(args, "Total Allocated")),
			   json_unsigned(json_member(args, "Total Reserved")), by_whom(im, item));
	*known = bytes > 0;
}

/* Writes the frees of a moment, then its allocations, so that no total exceeds those around it. */
static void tell_levels(struct import *im, struct json before, struct json after)
{
	const struct import_stack none = { 0 };
	uint64_t *all = &im->devices[0].allocated;

	for (int came = 0; came < 2; came++) {
		struct json old = json_first(before, NULL), new = json_first(after, NULL);

		for (uint32_t i = 0; i < LEVELS; i++) {
			old = json_next(before, old, NULL);
			new = json_next(after, new, NULL);
			int64_t bytes = came ? bytes_of(new) : -bytes_of(old);

			if (bytes_of(old) == bytes_of(new) || !bytes || (bytes > 0) != came)
				continue;
			*all += (uint64_t)bytes;
			tell_block(
				im, 0, LEVEL_ADDR * (i + 1), bytes, *all, *all,
				(struct gmt_event){
					.stack = import_stack_inner(im, none, levels[i], "torch", 0)
							 .id });
		}
	}
}

void import_trace_tell(struct import *im, const struct import_item *item)
{
	char name[LONGEST];

	json_string(json_member(im->trace[item->index], "name"), name, sizeof(name));
	if (im->levels)
		tell_levels(im, item->index ? im->trace[item->index - 1] : (struct json){ 0 },
			    im->trace[item->index]);
	else if (item->what == ITEM_ENTRY)
		tell_memory(im, item);
	else if (item->what == ITEM_BEGIN)
		import_mark_begin(im, name, strlen(name));
	else
		import_mark_end(im, name, strlen(name));
}
