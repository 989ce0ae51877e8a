/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python code objects <-> ids.
 */
#pragma once

#include "python.h"
#include "../rings/thread.h"

/* Id of a frame's code object, its definition copied at first sight (the frame keeps it alive).
 * buf holds GMT_DEF_MAX bytes. 0 = could not be defined. */
uint32_t code_id(struct thread *t, const struct python_code *k, uint8_t *buf);
void codes_forget(void);

#define CODE_TEXT_MAX 4096u

/* Writes a live compact str as UTF-8, cut at CODE_TEXT_MAX. Returns the bytes; 0: not compact. */
uint32_t code_text(uintptr_t str, uint8_t *out);
