/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts that the program made (cuCtxCreate): memory that is allocated while one is current
 * belongs to it, and ends with it. Application threads, any lock held: loads, and one query of the
 * driver if there are such contexts.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Always true, for conditions in hooks. Contexts beyond the list's room are ignored. */
bool contexts_note(uint64_t context);
bool contexts_drop(uint64_t context); /* false: it is not in the list */

/* Call it before an allocation is recorded: captures CTX_CURRENT if this thread's context is
 * another one than in its last such event. */
void contexts_say(void);
