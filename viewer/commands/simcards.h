/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated device's cards, as its library says them. */
#ifndef VIEWER_SIMCARDS_H
#define VIEWER_SIMCARDS_H

#include "../handover/search.h"

/* names: "h100-80g,mycard=24GiB", "all" or NULL: all of the table. 0, or a sentence was said and
 * the exit code; to be freed. */
int simcards_find(const char *names, struct card **cards, size_t *count);

#endif
