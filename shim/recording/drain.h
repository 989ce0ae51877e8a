/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes events and definitions from the rings in order, to the writer. On our own thread.
 */
#pragma once

#include "../../format/event.h"

struct gmt_writer_info;

bool drain_open(int fd, const struct gmt_writer_info *info);

bool drain_def(const struct gmt_def *d); /* straight to the writer */
void drain_flush(void);

uint32_t drain_pass(bool all); /* one round; returns the number of events written */
void drain_thin(void);	       /* if the size limit requires it */
bool drain_finish(void); /* the last events, the end mark, the index; true = all is in the file */

bool drain_goes_on(void);     /* false: it was asked to stop, or the file is gone */
void drain_ask_to_stop(void); /* any thread */
void drain_forget(void);      /* in a forked child */
