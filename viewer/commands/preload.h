/* SPDX-License-Identifier: Apache-2.0 */
/* Where the libraries of this installation are, and the environment that loads them. */
#ifndef VIEWER_PRELOAD_H
#define VIEWER_PRELOAD_H

#include <stdbool.h>

/* Sets LD_PRELOAD (what stands there stays) and, for the simulated device, LD_LIBRARY_PATH. 0, or a
 * sentence was said and EXIT_UNREADABLE. */
int preload_set(bool simulated);

/* The simulated device, loaded into this process; NULL: it is not here. */
void *preload_simulator(void);

#endif
