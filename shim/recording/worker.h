/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our own thread, from the first event to the end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

bool worker_start(void);
void worker_failed(int err); /* says that nothing can be recorded, and switches off */
bool worker_is_here(void);   /* its thread is one of this process */

/* Returns when our thread has begun a new round, and so seen earlier changes, or after most_ns. */
void worker_meet(uint64_t most_ns);

/* Waits for the end of the recording, at most that long. True: everything is in the file. */
bool worker_stop(uint64_t most_ns);
void worker_forget(void); /* in a forked child */
