/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack of the calling thread as one id.
 */
#ifndef GMT_STACK_H
#define GMT_STACK_H

#include "../rings/thread.h"

/*
 * 0 = no stack. Adds GMT_FLAG_TRUNCATED and GMT_FLAG_NO_PYTHON to *flags.
 * python_first: Python frames alone, and the native ones only where there are none.
 */
uint32_t stack_capture(struct thread *t, bool python_first, uint16_t *flags);

#endif
