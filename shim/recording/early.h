/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the last EARLY_MOST ranges and marks from before the first event on a device, so that a
 * range that encloses this event has its beginning.
 */
#pragma once

#include "../rings/thread.h"

#define EARLY_MOST 512u

void early_keep(struct thread *t, const struct gmt_event *e);
void early_replay(struct thread *t); /* when the rings exist and no other thread records yet */
void early_forget(void);
