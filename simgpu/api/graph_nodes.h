/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes of graphs that launch, copy or fill.
 */
#pragma once

#include "copy.h"

#define PARAMETERS 1024 /* most of one kernel */

/* drv_launch.c: packed arguments as an array; NULL if their offsets are not known. */
void **unpack(const void *function, void **extra, void *params[PARAMETERS]);
/* drv_copy.c */
int box_of_3d(const CUDA_MEMCPY3D *c, struct box *b);
