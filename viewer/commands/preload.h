/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of this installation's libraries, and the environment that loads them. */
#pragma once

#include "../base/usual.h"

/* Prepends to LD_PRELOAD and, for the simulated device, to LD_LIBRARY_PATH. Returns 0, or
 * EXIT_UNREADABLE after an error message. */
int preload_set(bool simulated);

/* Lets a linker find the simulated driver's library, and the CUDA runtime of this folder of
 * Python's packages, which have no names without a version. As above. */
int preload_link(const char *cuda);

/* The simulated device, loaded into this process; NULL if it is not installed. */
void *preload_simulator(void);
