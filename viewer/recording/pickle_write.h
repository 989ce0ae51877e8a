/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a pickle of plain data in protocol 2 and with the few opcodes that every reader of memory
 * snapshots knows. Each text is written only once, and so are values that the caller keeps.
 */
#pragma once

#include "../base/map.h"

struct pickler {
	FILE *f;
	uint32_t kept; /* values in the memo */
	struct map texts;
};

void pickler_start(struct pickler *p, FILE *f);
void pickler_stop(struct pickler *p); /* after the last value; frees the memo */

void pickler_int(struct pickler *p, int64_t n);
void pickler_beyond(struct pickler *p, uint64_t n); /* above INT64_MAX */
void pickler_none(struct pickler *p);
void pickler_bool(struct pickler *p, bool b);
void pickler_float(struct pickler *p, double d);
void pickler_word(struct pickler *p, const char *s);
void pickler_text(struct pickler *p, const char *s, size_t len);
void pickler_utf8(struct pickler *p, const char *s, size_t len); /* already in UTF-8 */

/* Begins a list, whose elements follow. pickler_next divides them into batches. */
void pickler_list(struct pickler *p);
void pickler_next(struct pickler *p, uint64_t index); /* before element index, from 0 */
void pickler_list_end(struct pickler *p, uint64_t count);

/* Begins a dictionary; key, value, key, value follow. */
void pickler_dict(struct pickler *p);
void pickler_dict_end(struct pickler *p);
void pickler_mark(struct pickler *p); /* before the elements of a tuple of more than three */
void pickler_tuple(struct pickler *p, uint64_t count); /* makes one of the latest values */

uint32_t pickler_keep(struct pickler *p); /* keeps the latest value; returns its number */
void pickler_again(struct pickler *p, uint32_t kept);

/* Members of a dictionary. */
void pickler_word_at(struct pickler *p, const char *key, const char *s);
void pickler_int_at(struct pickler *p, const char *key, int64_t n);
void pickler_text_at(struct pickler *p, const char *key, const char *s, size_t len);
