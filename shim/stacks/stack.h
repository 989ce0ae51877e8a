/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack of the calling thread as one id.
 */
#pragma once

#include "../rings/thread.h"

/*
 * 0 = no stack. Adds GMT_FLAG_TRUNCATED and GMT_FLAG_NO_PYTHON to *flags.
 * prefer_python: native frames only where there are no Python ones.
 */
uint32_t stack_capture(struct thread *t, bool prefer_python, uint16_t *flags);

/* Records the tensors in the variables of the frames of the stack that was just taken, which has
 * Python frames: of the innermost ones where that was not done before, or all of them. */
void stack_variables(struct thread *t, bool all);
