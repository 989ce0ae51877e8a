/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by spans.c, doing.c and levels.c only. */
#pragma once

#include "spans.h"

/* What an event shows about its thread, by the event's kind. */
enum act {
	ACT_NONE,
	ACT_BIRTH, /* an allocation of any layer */
	ACT_DEATH,
	ACT_OTHER, /* another event whose stack shows the thread's stage */
	ACT_RANGE,
};

/* doing.c: sets s->now to the event's thread, stage and signs. */
enum act doing_note(struct spans *s, const struct gmt_event *e);

/* True if the event's thread runs forward and the optimizer, or no thread is known to. */
static inline bool doing_drives(const struct spans *s)
{
	return !s->driver || s->driver == s->now.thread->id + 1ull;
}

/* levels.c: levels_end adds the curves' changes to the latest span, levels_begin starts anew. */
void levels_end(struct spans *s);
void levels_begin(struct spans *s, const struct gmt_event *e);
/* Moves the rows of b to a. */
void levels_join(struct spans *s, struct span *a, struct span *b);
