/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts that the program made (cuCtxCreate): memory that is allocated while one is current
 * belongs to it, and ends with it. Application threads, any lock held: loads, and one question to
 * the driver where there are such contexts.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* True after any note: for conditions in hooks. More than there is room for belong to nobody. */
bool contexts_note(uint64_t context);
bool contexts_drop(uint64_t context); /* false: it is none of them */

/* Before an allocation is recorded: says (CTX_CURRENT) whose memory this thread allocates, if that
 * is another context than was said last. */
void contexts_say(void);
