/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends text that is longer than the screen through $PAGER, or less. Only on a terminal, and only
 * once there is more than a screenful. A process has one pager, as it has one stdout.
 */
#pragma once

#include "../base/usual.h"

/* The file for output: stdout itself if nothing is to be paged. */
FILE *pager_open(void);
/* Shows buffered text, or waits until the user leaves the pager. */
void pager_close(FILE *f);
