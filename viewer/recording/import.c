/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts a snapshot to a recording: reads the state at the end, undoes the trace back to its
 * beginning, then writes all events forwards. The entries of several devices are merged by time.
 */
#include "import.h"

#include <unistd.h>

#include "../../format/record.h"
#include "../base/machine.h"
#include "../base/plain_file.h"
#include "../base/unpack.h"
#include "../base/sorted.h"
#include "import_parts.h"

/*
 * Facts that `attach` adds to the snapshot of a running process: its command, its version of
 * PyTorch, and which objects held its tensors at that moment.
 */

static void import_process_facts(struct import *im)
{
	static const char *const keys[] = { "argv", "torch.version" };
	const struct pickle_value *root = pickle_at(&im->p, im->p.root);
	const struct pickle_value *process = pickle_get(&im->p, root, "process");

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const struct pickle_value *text = pickle_text(&im->p, process, keys[i]);

		if (text && text->count)
			import_meta_bytes(im, keys[i], text->text, text->count);
	}
}

enum { DEVICE, ADDRESS, BYTES, AS, NAME, COLUMNS };

static void tell_row(struct import *im, const struct pickle_value *const v[COLUMNS])
{
	struct gmt_event e = { .kind = GMT_TAG_HELD, .thread = THREAD_MAIN };

	if (v[DEVICE]->number < 0 || v[DEVICE]->number >= IMPORT_DEVICES)
		return;
	e.device = (int32_t)v[DEVICE]->number;
	e.addr = (uint64_t)v[ADDRESS]->number;
	e.size = (uint64_t)v[BYTES]->number;
	e.arg1 = (uint64_t)v[AS]->number;
	e.name = import_string(im, v[NAME]->text, v[NAME]->count);
	import_event(im, e);
}

static void import_process_held(struct import *im)
{
	const struct pickle_value *root = pickle_at(&im->p, im->p.root), *row;
	const struct pickle_value *process = pickle_get(&im->p, root, "process");
	const struct pickle_value *held = pickle_list(&im->p, process, "held");

	for (uint32_t i = 0; (row = pickle_item(&im->p, held, i)) && import_visit(im); i++) {
		const struct pickle_value *v[COLUMNS];
		bool fine = true;

		for (uint32_t k = 0; k < COLUMNS; k++) {
			v[k] = pickle_item(&im->p, row, k);
			fine = fine && v[k] && v[k]->type == (k == NAME ? PICKLE_TEXT : PICKLE_INT);
		}
		if (fine)
			tell_row(im, v);
	}
}

#define TIME_MAX      (UINT64_C(1) << 52) /* microseconds */
#define SNAPSHOT_PART 60000u

bool import_recognises(const char *path)
{
	uint8_t start[UNPACK_START];
	int fd = file_open(path);
	ssize_t n = fd < 0 ? 0 : pread(fd, start, sizeof(start), 0);

	if (fd >= 0)
		close(fd);
	return n >= 4 &&
	       ((start[0] == 0x80 && start[1] >= 2 && start[1] <= 5) ||
		import_trace_starts(start, (size_t)n) || unpack_recognises(start, (size_t)n));
}

/* Adds a device's entries; times never go back. Without times the entries keep their order. */
static void add_entries(struct import *im, uint16_t device)
{
	const struct import_device *d = &im->devices[device];
	uint64_t last = 0;

	if (d->trace && d->trace->type != PICKLE_LIST)
		im->error = "a trace that is not a list";
	for (uint32_t i = 0; !im->error && d->trace && i < d->trace->count && import_visit(im);
	     i++) {
		const struct pickle_value *e = pickle_item(&im->p, d->trace, i);
		uint64_t t = pickle_number(&im->p, e, "time_us");

		if (t != 0)
			im->times = true;
		if (t > last && t < TIME_MAX)
			last = t;
		import_add_item(im, (struct import_item){ .time = last,
							  .index = i,
							  .device = device,
							  .what = ITEM_ENTRY });
		im->entries++;
	}
}

static void add_annotations(struct import *im)
{
	const struct pickle_value *a;

	for (uint32_t i = 0; (a = pickle_item(&im->p, im->annotations, i)) && import_visit(im);
	     i++) {
		const struct pickle_value *stage = pickle_text(&im->p, a, "stage");
		uint64_t t = pickle_number(&im->p, a, "time_us");
		bool end = pickle_is(stage, "END");

		if (!pickle_text(&im->p, a, "name") || !t || t >= TIME_MAX ||
		    (!end && !pickle_is(stage, "START")))
			continue;
		import_add_item(im, (struct import_item){ .time = t,
							  .index = i,
							  .what = end ? ITEM_END : ITEM_BEGIN });
	}
}

/* By time. At the same time a range begins before the entries in it, and ends after them. */
COMPARE(compare, struct import_item,
	ORDER(x->time, y->time) ?: ORDER(x->what, y->what) ?: ORDER(x->device, y->device) ?:
	ORDER(x->index, y->index))

static bool collect(struct import *im)
{
	const struct pickle_value *root = pickle_at(&im->p, im->p.root), *traces, *segments = root;

	if (root->type == PICKLE_DICT) {
		segments = pickle_list(&im->p, root, "segments");
		traces = pickle_list(&im->p, root, "device_traces");
		im->annotations = pickle_list(&im->p, root, "external_annotations");
		for (uint16_t i = 0; traces && i < traces->count && i < IMPORT_DEVICES; i++)
			im->devices[i].trace = pickle_item(&im->p, traces, i);
	}
	im->segments = segments;
	if (!segments || segments->type != PICKLE_LIST || (segments == root && !root->count))
		im->error = "a pickle, but not a memory snapshot of PyTorch: it has no segments";
	for (uint16_t i = 0; i < IMPORT_DEVICES && !im->error; i++)
		add_entries(im, i);
	if (im->times)
		add_annotations(im);
	return !im->error;
}

static void tell_item(struct import *im, const struct import_item *item)
{
	const struct pickle_value *name;

	if (im->trace) {
		import_trace_tell(im, item);
		return;
	}
	if (item->what == ITEM_ENTRY) {
		import_entry(im, item->device, item->index);
		return;
	}
	name = pickle_text(&im->p, pickle_item(&im->p, im->annotations, item->index), "name");
	if (item->what == ITEM_BEGIN)
		import_mark_begin(im, name->text, name->count);
	else
		import_mark_end(im, name->text, name->count);
}

static void define_threads(struct import *im)
{
	char payload[sizeof(struct gmt_def_thread) + 24];
	struct gmt_def_thread head = { .name_len = 4 };

	memcpy(payload, &head, sizeof(head));
	memcpy(payload + sizeof(head), "main", 4);
	import_def(im, GMT_DEF_THREAD, THREAD_MAIN, payload, sizeof(head) + 4);
	for (int i = 0; i < IMPORT_DEVICES; i++) {
		if (!im->devices[i].seen && !im->devices[i].traced)
			continue;
		head.name_len = (uint32_t)snprintf(payload + sizeof(head), 24, "pt_autograd_%d", i);
		memcpy(payload, &head, sizeof(head));
		import_def(im, GMT_DEF_THREAD, THREAD_ENGINE + (unsigned)i, payload,
			   sizeof(head) + head.name_len);
	}
}

/* Whether the context was "state": live blocks have stacks, but entries of the trace have none. */
static bool has_bare_entries(const struct import *im)
{
	return (im->any_python || im->any_native) && !im->any_frames[ACTION_alloc] &&
	       !im->any_frames[ACTION_free_requested] && !im->trace;
}

/* Writes a note for each thing that the file lacks or that was found by a rule. */
static void write_notes(struct import *im)
{
	if (im->levels) {
		import_note(im, "levels by category only, of one device: one block stands for each "
				"category; no single blocks, no stacks, no reserved memory");
		return;
	}
	if (!im->entries)
		import_note(im, "no trace: only the state at the end is known");
	if (im->entries && !im->times)
		import_note(im, "no times: two events are one microsecond apart");
	if (im->entries && im->late_blocks)
		import_note(im,
			    "the trace begins late: %" PRIu64 " blocks (%" PRIu64
			    " bytes) were there before its first event, of unknown age",
			    im->late_blocks, im->late_bytes);
	if (!im->any_python && !im->any_native)
		import_note(im, "no stacks: the classes of the blocks are unknown");
	else if (!im->any_python)
		import_note(im, "no Python frames");
	else if (has_bare_entries(im))
		import_note(im, "stacks of blocks that live at the end alone: steps are unknown");
	else if (im->trace)
		import_note(im, "stacks are of functions, each with the line where it begins");
	else if (im->entries && !im->any_native)
		import_note(
			im,
			"no native frames: events without Python frames count as backward (%" PRIu64
			" events)",
			im->bare);
	if (import_sizes_npu(im))
		import_note(im, "sizes round as torch_npu's allocator does (32 bytes more, then up "
				"to 512): that is no fragmentation");
	if (im->guessed)
		import_note(im,
			    "sizes of %" PRIu64
			    " blocks are the requested size, rounded by the allocator's rule; "
			    "those alive at the end are exact",
			    im->guessed);
	if (im->free_missing)
		import_note(im, "%" PRIu64 " blocks were freed without an entry in the trace",
			    im->free_missing);
	if (im->alloc_missing)
		import_note(im,
			    "%" PRIu64
			    " blocks were allocated or freed without an entry in the trace",
			    im->alloc_missing);
	if (im->unknown)
		import_note(im, "%" PRIu64 " entries of unknown actions, left out", im->unknown);
	import_note(im, "no tags of autograd: classes depend on stacks, phases and live ranges");
}

static void write_settings(struct import *im)
{
	const struct pickle_value *root = pickle_at(&im->p, im->p.root);
	const struct pickle_value *s = pickle_get(&im->p, root, "allocator_settings");
	const struct pickle_value *conf = pickle_text(&im->p, s, "PYTORCH_CUDA_ALLOC_CONF");

	import_sizes_settings(im, s);
	import_meta(im, "source",
		    im->levels	? "memory timeline of torch.profiler"
		    : im->trace ? "trace of torch.profiler"
				: "PyTorch memory snapshot");
	import_process_facts(im);
	if (conf && conf->count)
		import_meta(im, "PYTORCH_CUDA_ALLOC_CONF", "%.*s",
			    conf->count < 300 ? (int)conf->count : 300, conf->text);
}

static void write_facts(struct import *im)
{
	char key[48];

	for (int i = 0; i < IMPORT_DEVICES; i++) {
		if (!im->devices[i].seen)
			continue;
		snprintf(key, sizeof(key), "device.%d.asked_bytes_at_end", i);
		import_meta(im, key, "%" PRIu64, im->devices[i].asked);
		snprintf(key, sizeof(key), "device.%d.asked_bytes_peak", i);
		import_meta(im, key, "%" PRIu64, im->devices[i].asked_peak);
		snprintf(key, sizeof(key), "device.%d.rounding_at_peak", i);
		import_meta(im, key, "%" PRIu64, im->devices[i].lost);
	}
	write_notes(im);
}

/* Stores the snapshot itself, so that `export` can write again what no event holds. */
static void keep_snapshot(struct import *im, const uint8_t *data, size_t len)
{
	for (uint32_t part = 0; len; part++) {
		size_t n = len < SNAPSHOT_PART ? len : SNAPSHOT_PART;

		import_def(im, GMT_DEF_SNAPSHOT, part, data, n);
		data += n;
		len -= n;
	}
}

static void write_definitions(struct import *im)
{
	uint64_t first = im->item_count ? im->items[0].time : 0;

	im->now = IMPORT_START;
	define_threads(im);
	for (int i = 0; i < IMPORT_DEVICES; i++)
		if (im->devices[i].seen)
			import_begin_device(im, i);
	if (im->trace)
		import_trace_begin(im);
	import_meta(im, "state_events", "%" PRIu64, im->seq);
	if (im->entries && has_bare_entries(im))
		import_meta(im, "stacks_of", "blocks that live at the end");
	if (!im->trace)
		import_marks_early(im);
	for (size_t i = 0; i < im->item_count && !im->err; i++) {
		im->now =
			IMPORT_START + 1000 * (im->times ? im->items[i].time - first : (uint64_t)i);
		tell_item(im, &im->items[i]);
	}
	import_metadata(im, NULL);
	for (int i = 0; i < IMPORT_DEVICES; i++)
		import_finish_device(im, i);
	import_process_held(im);
	import_event(im,
		     (struct gmt_event){ .kind = GMT_END, .thread = THREAD_MAIN, .device = -1 });
	write_facts(im);
}

static bool rewind_devices(struct import *im)
{
	bool ok = import_read_segments(im, im->segments);

	for (int i = 0; i < IMPORT_DEVICES && ok; i++)
		import_rewind(im, &im->devices[i]);
	return ok && !im->error;
}

static bool write_recording(struct import *im, int fd, const void *data, size_t len)
{
	size_t bytes = (gmt_writer_workspace(0) + 63) & ~(size_t)63;
	void *workspace = aligned_alloc(64, bytes);
	struct gmt_writer_info info = { 0 };

	if (!workspace)
		machine_out_of_memory();
	SORT(im->items, im->item_count, compare);
	if (im->times)
		info.realtime_minus_monotonic_ns =
			(int64_t)(im->items[0].time * 1000 - IMPORT_START);
	im->w = gmt_writer_open(workspace, bytes, fd, &info, &im->err);
	if (im->w) {
		write_settings(im);
		if (rewind_devices(im))
			write_definitions(im);
		if (!im->trace)
			keep_snapshot(im, data, len);
		if (!im->error && !im->err)
			im->err = gmt_writer_finish(im->w);
	}
	free(workspace);
	return !im->err && !im->error;
}

static void release(struct import *im)
{
	FOR_EACH (struct import_device, d, im->devices, IMPORT_DEVICES) {
		if (!d->seen)
			continue;
		tree_free(&d->segments);
		tree_free(&d->blocks);
		tree_free(&d->end);
		tree_free(&d->pools);
		tree_free(&d->pieces);
		free(d->exact);
	}
	free(im->devices);
	free(im->items);
	free(im->trace);
	free(im->around);
	map_free(&im->alive);
	map_free(&im->whose);
	map_free(&im->strings);
	map_free(&im->open);
	import_frames_free(&im->frames);
	pickle_free(&im->p);
}

bool import_bytes(const void *data, size_t len, int fd, char *error, size_t room)
{
	struct import im = { .budget = len < SIZE_MAX / 8 ? 8 * len : SIZE_MAX };
	bool trace = import_trace_starts(data, len);
	static const char saved[] = "\x80\2\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19"; /* before 1.6 */
	bool ok = trace ? pickle_read(&im.p, "\x80\2N.", 4) : pickle_read(&im.p, data, len);

	im.devices = need_new(IMPORT_DEVICES * sizeof(*im.devices));
	if (len > sizeof(saved) && !memcmp(data, saved, sizeof(saved) - 1))
		ok = snprintf(error, room, "a checkpoint of torch.save, not a snapshot") < 0;
	else if (!ok)
		snprintf(error, room, "cannot be read as a memory snapshot: %s", im.p.error);
	else if (!(trace ? import_trace_read(&im, data, len) : collect(&im)) ||
		 !write_recording(&im, fd, data, len)) {
		ok = false;
		if (im.error)
			snprintf(error, room, "%s", im.error);
		else
			snprintf(error, room, "cannot be converted: %s",
				 im.err == -GMT_ERR_SYS ? strerror(errno) : gmt_strerror(im.err));
	}
	release(&im);
	return ok;
}

int import_file(const char *path, int fd)
{
	struct unpacked u;
	char error[300];
	int rc = unpack_file(path, &u);

	if (rc)
		return rc;
	if (!import_bytes(u.data, u.len, fd, error, sizeof(error)))
		rc = say_unreadable("%s: %s", path, error);
	unpack_free(&u);
	return rc;
}
