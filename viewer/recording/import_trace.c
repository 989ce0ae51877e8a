/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace of torch.profiler (Kineto, JSON) that has [memory] events: each block of a GPU that came
 * or went, with the allocator's own totals. What was there before the trace is one block. No
 * stacks. Or its memory timeline: times, and the bytes of each category at each; one block stands
 * for a category, and its name for a stack.
 */
#include "../../format/record.h"
#include "../base/json.h"
#include "../base/unpack.h"
#include "import_parts.h"

#define EARLY_ADDR 4096		       /* of the block that stands for what was there before */
#define LEVEL_ADDR (UINT64_C(1) << 40) /* between the blocks of two categories */
#define LEVELS	   8		       /* categories of a memory timeline */
#define LONGEST	   512
/* More than any device has, so that sums of a few stay numbers. */
#define MOST_BYTES (INT64_C(1) << 60)
#define MOST_TIME  (UINT64_C(1) << 53) /* microseconds, 285 years */

#define FRAME(len, name) "]}(\x8c\4name\x8c" len name "\x8c\10filename\x8c\5torchua"
const char import_trace_stacks[] =
	"\x80\2](" FRAME("\11", "PARAMETER") FRAME("\17", "OPTIMIZER_STATE") FRAME("\5", "INPUT")
		FRAME("\11", "TEMPORARY") FRAME("\12", "ACTIVATION") FRAME("\10", "GRADIENT")
			FRAME("\17", "AUTOGRAD_DETAIL") FRAME("\7", "Unknown") "e.";

/* An object of JSON with one of the members that come first, or arrays in an array. */
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

/* Optimizers' own are left out: without passes between them they are no steps. */
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
		import_add_item(im, item);
		im->entries++;
	} else if (is_mark(event)) {
		item.what = ITEM_BEGIN;
		import_add_item(im, item);
		item.what = ITEM_END;
		item.time += time_of(json_member(event, "dur"));
		import_add_item(im, item);
	} else {
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

/* A block of the trace, or of the time before it. */
static void tell_block(struct import *im, uint16_t device, uint64_t addr, int64_t bytes,
		       uint64_t all, uint64_t reserved, uint32_t stack)
{
	import_event(im, (struct gmt_event){ .kind = bytes < 0 ? GMT_BLOCK_FREE : GMT_BLOCK_ALLOC,
					     .addr = addr,
					     .size = (uint64_t)(bytes < 0 ? -bytes : bytes),
					     .arg0 = all,
					     .arg1 = reserved,
					     .stack = stack,
					     .device = (int16_t)device,
					     .thread = THREAD_MAIN });
}

/* Before the first event of a device. */
void import_trace_begin(struct import *im)
{
	FOR_EACH (const struct import_item, item, im->items, im->item_count) {
		struct import_device *d = &im->devices[item->device];
		struct json args = json_member(im->trace[item->index], "args");
		int64_t before = bytes_of(json_member(args, "Total Allocated")) -
				 bytes_of(json_member(args, "Bytes"));

		if (item->what != ITEM_ENTRY || d->written)
			continue;
		d->written = true;
		d->allocated = before > 0 ? (uint64_t)before : 0;
		if (!d->allocated)
			continue;
		tell_block(im, item->device, EARLY_ADDR, before, d->allocated, d->allocated, 0);
		import_note(im,
			    "the trace begins late: %" PRIu64
			    " bytes of device %u were there before its first event and count as "
			    "one block",
			    d->allocated, item->device);
	}
}

/* Part of what was there before the trace goes: the rest is another block. */
static void free_early(struct import *im, uint16_t device, uint64_t bytes, uint64_t all,
		       uint64_t reserved)
{
	struct import_device *d = &im->devices[device];
	uint64_t left = d->allocated > bytes ? d->allocated - bytes : 0;

	if (d->allocated)
		tell_block(im, device, EARLY_ADDR, -(int64_t)d->allocated, all - left, reserved, 0);
	if (left)
		tell_block(im, device, EARLY_ADDR, (int64_t)left, all, reserved, 0);
	d->allocated = left;
}

static void tell_memory(struct import *im, const struct import_item *item)
{
	struct json args = json_member(im->trace[item->index], "args");
	uint64_t addr = json_unsigned(json_member(args, "Addr"));
	uint64_t all = json_unsigned(json_member(args, "Total Allocated"));
	uint64_t reserved = json_unsigned(json_member(args, "Total Reserved"));
	int64_t bytes = bytes_of(json_member(args, "Bytes"));
	uint32_t *known = map_put(&im->alive, map_hash(item->device, &addr, sizeof(addr)), NULL);

	if (bytes < 0 && !*known)
		free_early(im, item->device, (uint64_t)-bytes, all, reserved);
	else if (bytes)
		tell_block(im, item->device, addr, bytes, all, reserved, 0);
	*known = bytes > 0;
}

/* What goes first: between the changes of one moment nothing is higher than before or after. */
static void tell_levels(struct import *im, struct json before, struct json after)
{
	const struct pickle_value *stacks = pickle_at(&im->p, im->p.root);
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
			tell_block(im, 0, LEVEL_ADDR * (i + 1), bytes, *all, *all,
				   import_stack(im, pickle_item(&im->p, stacks, i)).id);
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
