/* SPDX-License-Identifier: Apache-2.0 */
/* The sign by which two recordings are of different runs. */
#ifndef VIEWER_RANKS_DIFFER_H
#define VIEWER_RANKS_DIFFER_H

#include "ranks_look.h"

/* Between the starts of two ranks of a run. */
#define RANKS_LONGEST_START (600 * 1000000000LL)

/* "WORLD_SIZE is 2 in a.gmt and 4 in b.gmt"; false: nothing says that they are of different runs.
 */
bool ranks_differ(const struct rank_file *a, const struct rank_file *b, char *why, size_t room);

#endif
