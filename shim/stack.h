/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack of the calling thread as one id.
 */
#ifndef GMT_STACK_H
#define GMT_STACK_H

#include "thread.h"

/* 0 = no stack. Adds GMT_FLAG_TRUNCATED and GMT_FLAG_NO_PYTHON to *flags. */
uint32_t stack_capture(struct thread *t, uint16_t *flags);

/* Room for one thread's stacks; NULL if there is none (that thread has no stacks then). */
struct stack_scratch *stack_new_scratch(void);
void stack_free_scratch(struct stack_scratch *s);

#endif
