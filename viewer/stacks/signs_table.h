/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of PyTorch and of well-known libraries that say what a block is for. */
#ifndef VIEWER_SIGNS_TABLE_H
#define VIEWER_SIGNS_TABLE_H

#include "defs.h"

uint32_t signs_of_code(const struct defs_code *c); /* enum stack_sign */

#endif
