/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of spans only. */
#ifndef VIEWER_DOING_H
#define VIEWER_DOING_H

#include "spans.h"

/* What kinds of events say of their thread. */
enum act {
	ACT_NONE,
	ACT_BIRTH, /* of memory of any layer */
	ACT_DEATH,
	ACT_OTHER, /* something else that a thread does at a place in the program */
	ACT_RANGE,
};

/* doing.c: the thread and the stage of an event become s->now. */
enum act doing_note(struct spans *s, const struct gmt_event *e);

/* passes.c: counts passes through the network. */
void passes_note(struct spans *s, const struct gmt_event *e, enum act act);

/* levels.c: what the curves did since the latest span began goes to that span. */
void levels_end(struct spans *s);
void levels_begin(struct spans *s, const struct gmt_event *e);
/* The rows of b become rows of a. */
void levels_join(struct spans *s, struct span *a, const struct span *b);

#endif
