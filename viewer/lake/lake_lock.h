/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allows one writer of a lake at a time, from the first look at its contents to the last new name.
 * Otherwise two writers could give the ranks of one run two names, or one recording two places. The
 * lock ends with the process, however that ends. Readers never take it.
 */
#ifndef VIEWER_LAKE_LOCK_H
#define VIEWER_LAKE_LOCK_H

#include <stdbool.h>

struct lake_lock {
	int fd;
	bool made; /* the lake's folder was made here: removed again if nothing was written */
};

/* Waits for another writer, with a note. Returns 0, or an exit code after one error message. */
int lake_lock(struct lake_lock *l, const char *lake);
void lake_unlock(struct lake_lock *l, const char *lake);

#endif
