/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of spans only. */
#pragma once

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

/* The thread of the event is the one that runs forward and the optimizer, as far as is known. */
static inline bool doing_drives(const struct spans *s)
{
	return !s->driver || s->driver == s->now.thread->id + 1ull;
}

/* levels.c: what the curves did since the latest span began goes to that span. */
void levels_end(struct spans *s);
void levels_begin(struct spans *s, const struct gmt_event *e);
/* The rows of b become rows of a. */
void levels_join(struct spans *s, struct span *a, struct span *b);
