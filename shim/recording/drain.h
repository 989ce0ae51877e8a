/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes what the rings hold, puts it in order, hands it to the writer. On our own thread.
 */
#pragma once

#include "../../format/event.h"

struct gmt_writer_info;

bool drain_open(int fd, const struct gmt_writer_info *info);

bool drain_def(const struct gmt_def *d); /* straight into the file */
void drain_flush(void);

uint32_t drain_pass(bool all); /* one round; how many events it wrote */
void drain_thin(void);	       /* if the bound asks for it */
bool drain_finish(void); /* the last events, the end mark, the index; true = all is in the file */

bool drain_goes_on(void);     /* nobody asked it to stop, and the file is there */
void drain_ask_to_stop(void); /* any thread */
void drain_forget(void);      /* in a forked child */
