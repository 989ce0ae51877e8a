/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of this installation's libraries, and the environment that loads them. */
#pragma once

#include "../base/usual.h"

/* Prepends to LD_PRELOAD and, for the simulated device, to LD_LIBRARY_PATH. Returns 0, or
 * EXIT_UNREADABLE after an error message. */
int preload_set(bool simulated);

/* The simulated device, loaded into this process; NULL if it is not installed. */
void *preload_simulator(void);
