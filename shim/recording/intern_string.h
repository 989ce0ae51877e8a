/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strings <-> ids. gmt_string itself is in capture.h.
 */
#pragma once

#include "../../format/event.h"

#define STRING_MAX 4096u /* longer ones are cut */

/* Emits the definitions of all strings so far: those from before the session are in no ring. */
void strings_each(bool (*emit)(const struct gmt_def *d));
/* The id of a string of the drain itself; the definition of a new one goes to emit. */
uint32_t strings_id(const char *s, size_t len, bool (*emit)(const struct gmt_def *d));

uint64_t strings_cut(void); /* names left out because there was no room */
void strings_forget(void);
