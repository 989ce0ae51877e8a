/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text that is longer than the screen goes through $PAGER, or less: on a terminal only, and only
 * once there is more than a screenful. One of it in a process, as there is one stdout.
 */
#ifndef VIEWER_PAGER_H
#define VIEWER_PAGER_H

#include <stdio.h>

/* Where text is to go: stdout itself where nothing is to be paged. */
FILE *pager_open(void);
/* Shows what waits, or waits for the reader to leave the pager. */
void pager_close(FILE *f);

#endif
