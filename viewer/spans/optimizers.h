/* SPDX-License-Identifier: Apache-2.0 */
/* Which lines of the program called an optimizer: they tell one from another. */
#ifndef VIEWER_OPTIMIZERS_H
#define VIEWER_OPTIMIZERS_H

#include "../stacks/stacks.h"

/* The lines of the program's own on a stack inside of an optimizer's step as one number, without
 * those of the optimizer; 0 = there are none. */
uint32_t optimizers_caller(struct stacks *stacks, uint32_t stack);

#endif
