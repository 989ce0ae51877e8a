/* SPDX-License-Identifier: Apache-2.0 */
/* Writes strings of any bytes: as JSON, or for a terminal. */
#pragma once

#include "usual.h"

void emit_json_string(FILE *f, const char *s, size_t len); /* with its quotes */
/* Prints control characters and bytes that are not UTF-8 as \xNN, and invisible characters (marks
 * of text direction, for example) as \u202e. */
void emit_plain_string(FILE *f, const char *s, size_t len);
/* Bytes of the character at s, or 0 if it cannot be shown. */
size_t emit_plain_char(const char *s, size_t len);
#define EMIT_ESCAPE 12
/* Text to print for a character that cannot be shown; returns how many bytes of s it replaces. */
size_t emit_escape(char out[EMIT_ESCAPE], const char *s, size_t len);
size_t emit_plain_width(const char *s, size_t len); /* columns that emit_plain_string fills */

/* Bytes of the UTF-8 character at s, 0 if there is none; len is not 0. */
size_t emit_utf8(const char *s, size_t len);
