/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our own thread: takes what the rings hold, puts it in order, hands it to the writer.
 */
#ifndef GMT_DRAIN_H
#define GMT_DRAIN_H

#include "../../format/record.h"

struct gmt_writer_info;

bool drain_open(int fd, const struct gmt_writer_info *info);

/* Straight into the file: before drain_start on the thread that starts the session, then on the
 * drain's own. */
bool drain_def(const struct gmt_def *d);
void drain_flush(void);

bool drain_start(void);

bool drain_is_here(void); /* its thread is one of this process */

/* The last events, the end mark, the index. Waits for the drain, but not longer. true = all is in
 * the file. */
bool drain_stop(uint64_t most_ns);
void drain_forget(void); /* in a forked child */

#endif
