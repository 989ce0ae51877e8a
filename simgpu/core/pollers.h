/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads that only query whether events are reached (pollers.c).
 */
#pragma once

#include "stream.h"

void pollers_asked(struct sim_event *e, bool met); /* this thread queried it */
void pollers_forget(struct sim_event *e);
void pollers_expect(void); /* a collective was put on a stream; pollers may query it */
void pollers_end(void);	   /* at exit: all work counts as done; they get 1 s to see it */
bool pollers_ended(void);
void pollers_look(uint64_t seen); /* waits until they have looked at the current state */
