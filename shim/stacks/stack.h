/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack of the calling thread as one node of the stack tree.
 */
#pragma once

#include "../rings/thread.h"

/*
 * Returns the stack's node, 0 = no stack. Adds GMT_FLAG_TRUNCATED and GMT_FLAG_NO_PYTHON to *flags.
 * prefer_python: native frames only if there are no Python ones.
 */
uint32_t stack_capture(struct thread *t, bool prefer_python, uint16_t *flags);

/* Records the tensors in variables of the stack that was just captured, which has Python frames: of
 * all frames, or of the innermost ones for which this was not done before. */
void stack_variables(struct thread *t, bool all);
