/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of the Python statements that recorded stacks name, so that a recording shows the
 * program's own lines wherever it is read.
 */
#pragma once

#include "../../format/event.h"

void sources_setup(void); /* in the constructor: files that change from now on are not read */

/* On the drain's thread. */
void sources_note(const struct gmt_def *d); /* each definition on its way to the file */
/* Reads one file, and emits the statements that wait for it; false if none waits. */
bool sources_write(bool (*emit)(const struct gmt_def *d));
void sources_forget(void); /* in a forked child */
