/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges and marks from before the first event on a device: kept, so that a range which encloses
 * that event has its beginning; the last EARLY_MOST of them.
 */
#pragma once

#include "../rings/thread.h"

#define EARLY_MOST 512u

void early_keep(struct thread *t, const struct gmt_event *e);
void early_replay(struct thread *t); /* the rings are there, no other thread records yet */
void early_forget(void);
