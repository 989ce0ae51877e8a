/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One writer of a lake at a time, from looking what there is to the last name given: otherwise two
 * would each give the ranks of one run a name, or one recording two places. It ends with the
 * process, however that ends. Never held while only reading.
 */
#ifndef VIEWER_LAKE_LOCK_H
#define VIEWER_LAKE_LOCK_H

#include <stdbool.h>

struct lake_lock {
	int fd;
	bool made; /* the lake's folder is ours: it goes again if nothing was written */
};

/* Waits for the writer that has it, and says so. 0, or a sentence was said and the exit code. */
int lake_lock(struct lake_lock *l, const char *lake);
void lake_unlock(struct lake_lock *l, const char *lake);

#endif
