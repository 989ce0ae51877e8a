/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts a recording to formats of other tools: one function export_NAME and one row in
 * export_formats.def per format. Every format uses the same data: all blocks of the run with their
 * classes, or the blocks alive at a moment.
 */
#pragma once

#include "../moments/timeline.h"

struct export
{
	const char *file, *which, *columns; /* frames and columns of events to write; NULL = all */
	long device;
	struct recording *recording;
	struct moment_query query; /* of --at, looked up in the run */
	struct timeline timeline;  /* without a device */
	FILE *f;
};

struct export_format {
	const char *name, *summary;
	bool moment;	  /* it has the blocks alive at --at, not the whole run */
	const char *head; /* how its files begin; "": with the name of a class */
	size_t head_length;
	int (*write)(struct export *x);
};

#define EXPORT(name, moment, head, summary) int export_##name(struct export *x);
#include "export_formats.def"

/* The table of events, which needs only the recording. `columns`: a list with commas, NULL = all.
 * Returns 0, or an exit code after one error message. */
int export_event_table(struct export *x);

/* Passes the changes and events of all devices to the sink, in order. */
void export_series(struct export *x, const struct series_sink *sink);
/* Whether the block counts: those of the framework if there is one, else all that CUDA calls
 * allocated. */
bool export_counts(const struct export *x, uint32_t life);
/* A block's class at birth, with its rule. Fills in *b. */
struct verdict export_verdict(struct export *x, uint32_t life, struct block *b);

/* The blocks alive at --at, with classes. Returns 0, or an exit code after an error message. */
int export_moment(struct export *x, struct moment *mo);

/* The frames of a stack, innermost first, in x->timeline.stacks until the next call. seq: the event
 * with this stack. */
size_t export_frames(struct export *x, uint32_t stack, uint64_t seq);
/* A frame's name, never empty. buf is for frames without a name. */
const char *export_frame_name(const struct frame *f, char *buf, size_t room);
uint64_t export_frame_key(const struct frame *f, const char *name);

/* Wall clock, nanoseconds since 1970. */
uint64_t export_wall(const struct export *x, uint64_t time_ns);
