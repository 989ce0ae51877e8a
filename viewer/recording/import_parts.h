/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the import only. */
#pragma once

#include "../../format/writer.h"
#include "../base/json.h"
#include "../base/map.h"
#include "../base/tree.h"
#include "pickle.h"

#define IMPORT_DEVICES 256
#define IMPORT_START   1000000000u /* time of the first event, ns; not 0, which means "never" */

enum import_action {
	ACTION_OTHER,
#define ACTION(name) ACTION_##name,
#include "import_actions.def"
	ACTIONS
};
enum import_block { BLOCK_FREED = 1, BLOCK_WAITS };	   /* marks of freed blocks */
enum import_thread { THREAD_MAIN = 1, THREAD_ENGINE = 2 }; /* + device */

/* A list of frames, converted to a stack of the recording. */
struct import_stack {
	uint32_t id;
	uint32_t node; /* string id of the backward node that is evaluated, 0 = none */
	bool engine;   /* the thread is one of autograd's */
	bool python, native;
};

struct import_frames {
	struct map lists; /* value -> index in stacks */
	struct import_stack *stacks;
	size_t count, room;
	struct map frames; /* value -> index in known */
	struct map texts;  /* hash of name, file and line -> index in known */
	struct import_frame *known;
	size_t known_count, known_room;
	struct map nodes; /* hash of parent, kind and value -> id */
	uint32_t node_count, code_count, symbol_count;
	uint64_t interpreter; /* address of the interpreter loop's frame, 0 = none yet */
};

/* The state of a device's allocator: first as at the end, then rewound to the beginning. */
struct import_device {
	bool seen;
	bool traced;  /* in a trace of torch.profiler */
	bool written; /* its segments are in the file */
	const struct pickle_value *trace;
	struct tree segments; /* reserved addresses; mark = 1: expandable */
	struct tree blocks;   /* size 0 = unknown, handle = requested size; mark: enum import_block,
				 not reusable yet */
	struct tree end;      /* live blocks at the end; seq: 1 + their frames' value, 0 = none */
	struct tree pools;    /* private pools' segments at the end; seq, handle = the pool's id */
	struct tree pieces;   /* mappings; handle = their physical memory */
	uint64_t *exact;      /* block size for each entry of the trace, 0 = unknown */
	bool no_requests, no_completions;
	uint64_t allocated, reserved, asked, asked_peak;
	uint64_t peak, lost; /* most allocated bytes; bytes of rounding at that peak */
};

struct import_item {
	uint64_t time; /* microseconds, 0 = unknown */
	uint32_t index;
	uint16_t device;
	uint8_t what; /* enum import_what */
};

enum import_what { ITEM_BEGIN, ITEM_ENTRY, ITEM_END };

struct import {
	struct pickle p;
	size_t budget; /* elements that may still be read, 8 for each byte of the file at first */
	const char *error;
	struct gmt_writer *w;
	int err; /* of the writer, 0 = none */
	uint64_t seq, now;
	struct import_device *devices;
	struct import_frames frames;
	struct map strings; /* hash -> id */
	uint32_t string_count;
	struct import_item *items;
	size_t item_count, item_room;
	const struct pickle_value *segments, *annotations;
	struct json *trace; /* events of a trace of torch.profiler, NULL: it is a snapshot */
	struct import_around *around; /* the trace's ranges and allocations */
	size_t around_count, around_room;
	bool functions;	  /* some ranges are Python functions */
	struct map whose; /* event -> index in around */
	bool levels;	  /* trace holds the rows of a memory timeline */
	struct map alive; /* device and address -> whether the block is live */
	struct map open;  /* name -> number of the open range, 0 = none */
	uint64_t ranges, evaluations, handles;
	uint32_t metadata; /* name of the open range of user_metadata, 0 = none */
	uint64_t metadata_range;
	uint32_t evaluating; /* string id of the latest event's backward node */
	uint64_t max_split, round_divisions[16], npu_votes, cuda_votes;
	bool any_python, any_native, any_frames[ACTIONS];

	/* for the notes */
	bool times;
	uint64_t entries, late_blocks, late_bytes, guessed, free_missing, alloc_missing, unknown;
	uint64_t bare; /* allocations and frees without frames, which count as backward */
	unsigned notes;
};

/* import_out.c */
uint32_t import_string(struct import *im, const char *s, size_t len);
void import_def(struct import *im, uint32_t kind, uint32_t id, const void *payload, size_t len);
void import_event(struct import *im, struct gmt_event e); /* sets its seq and time */
void import_meta(struct import *im, const char *key, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void import_meta_bytes(struct import *im, const char *key, const char *value, size_t len);
void import_note(struct import *im, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* import_frames.c: the stack is empty if frames is NULL or no list. */
struct import_stack import_stack(struct import *im, const struct pickle_value *frames);
/* Returns the stack with one more Python frame, its innermost. */
struct import_stack import_stack_inner(struct import *im, struct import_stack s, const char *name,
				       const char *file, uint32_t line);
void import_frames_free(struct import_frames *f);

/* import_state.c: reads the state at the end, then rewinds it to the beginning. */
bool import_read_segments(struct import *im, const struct pickle_value *segments);
void import_rewind(struct import *im, struct import_device *d);
bool import_visit(struct import *im); /* false: im->error is set */
void import_add_item(struct import *im, struct import_item item);
/* The frames of a block that is live at the end, or NULL. With the context "state" there are no
 * other frames. */
const struct pickle_value *import_frames_at_end(const struct import *im,
						const struct import_device *d, uint64_t addr);

/* import_marks.c: reserved addresses. */
void ranges_add(struct tree *t, uint64_t addr, uint64_t size, bool expandable);
void ranges_cut(struct tree *t, uint64_t addr, uint64_t size);

/* import_sizes.c: the size of the block that the allocator made for a request of `asked` bytes. */
uint64_t import_block_size(const struct import *im, const struct import_device *d, uint64_t addr,
			   uint64_t asked);
/* Compares a block's size at the end with the rounding of torch_npu, a fork of PyTorch. */
void import_sizes_look(struct import *im, uint64_t asked, uint64_t size);
bool import_sizes_npu(const struct import *im);
void import_sizes_settings(struct import *im, const struct pickle_value *settings);

/* import_replay.c: writes the state before the trace, each entry, and the changes at the end. */
void import_begin_device(struct import *im, int device);
void import_entry(struct import *im, int device, uint32_t index);
void import_finish_device(struct import *im, int device);

/* import_marks.c: ranges. */
void import_mark_begin(struct import *im, const char *name, size_t len);
void import_mark_end(struct import *im, const char *name, size_t len);
void import_marks_early(struct import *im); /* begins those that were open at first */
void import_metadata(struct import *im, const struct pickle_value *text);

/* import_trace.c */
bool import_trace_starts(const void *data, size_t len);
bool import_trace_read(struct import *im, const void *data, size_t len);
void import_trace_begin(struct import *im);
void import_trace_tell(struct import *im, const struct import_item *item);

/* import_trace_stacks.c */
struct import_around {
	uint64_t thread;
	double from, to;  /* microseconds */
	struct json name; /* name of a range; missing: an allocation */
	uint32_t index;	  /* number of the event in the trace */
	size_t outer;
	uint32_t evaluation; /* number of the backward node's evaluation, 0 = none */
	struct import_stack stack;
};
void import_around_add(struct import *im, struct json event, struct json name, uint32_t index);
void import_around_find(struct import *im); /* called after the last addition */

enum import_action import_action(const struct import *im, const struct pickle_value *entry);
