/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording in the formats of other tools: one file a format, one row in export_formats.def. All
 * see the same: each block's birth and end with its class, each event after it, what is alive at a
 * moment.
 */
#ifndef VIEWER_EXPORT_H
#define VIEWER_EXPORT_H

#include <stdio.h>

#include "../moments/moments.h"
#include "../moments/series.h"
#include "../recording/recording.h"
#include "../stacks/owners.h"

struct export_options {
	const char *file, *to, *output, *at, *stacks, *table, *columns;
	long device;
};

struct export
{
	const struct export_options *options;
	struct recording recording;
	struct model facts; /* after the whole run */
	struct stacks stacks;
	struct owners owners;
	struct series series;
	FILE *f;
};

struct export_format {
	const char *name, *summary;
	bool moment; /* of what is alive at --at, not of the whole run */
	int (*write)(struct export *x);
};

#define EXPORT(name, moment, summary) int export_##name(struct export *x);
#include "export_formats.def"
#undef EXPORT

/* The table of events, which needs nothing but the recording; `columns` a list with commas, NULL =
 * all. 0, or a sentence was said and the exit code. */
int export_event_table(struct export *x);
int export_event_columns_check(const char *columns);

/* A block that counts: framework blocks where there are any, else what CUDA calls gave. */
struct export_life {
	const struct block *block;
	uint64_t time_ns; /* of this birth or end */
	unsigned born_as; /* enum category */
	bool ended;
};

/* Called in order of events; either may be NULL. */
struct export_walk {
	void (*life)(void *ctx, const struct export_life *l); /* a birth, or an end */
	void (*change)(void *ctx, const struct series_change *c);
	void (*event)(void *ctx, const struct gmt_event *e, const struct model *m);
	void *ctx;
};

/* One run over the events. 0, or a sentence was said and the exit code. */
int export_walk(struct export *x, const struct export_walk *walk);

/* What is alive at the moment of --at, with classes. */
struct export_moment {
	struct model model;
	struct moment moment;
	uint8_t *classes; /* of moment.blocks */
};

int export_moment(struct export *x, struct export_moment *m);
void export_moment_free(struct export_moment *m);

/* The frames of a stack, innermost first, in x->stacks until the next call. seq: of its event. */
size_t export_frames(struct export *x, uint32_t stack, uint64_t seq);
/* A frame's name: never empty. buf is for those that have none. */
const char *export_frame_name(const struct frame *f, char *buf, size_t room);

/* Wall clock, nanoseconds since 1970. */
uint64_t export_wall(const struct export *x, uint64_t time_ns);

#endif
