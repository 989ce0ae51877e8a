/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of texts, their beginnings, and words in them. */
#pragma once

#include "usual.h"

static inline bool ending_is(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && !memcmp(s + n - m, end, m);
}

/* The part behind the last such character, or the whole text: for "Net.forward" and '.' it is
 * "forward". */
static inline const char *ending_behind(const char *s, char c)
{
	const char *last = strrchr(s, c);

	return last ? last + 1 : s;
}

/* A list of words for the questions below. */
#define ONE_OF(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* Whether a text of n characters is one of the words, */
static inline bool words_equal(const char *s, size_t n, const char *const *words)
{
	while (*words && (strlen(*words) != n || memcmp(s, *words, n)))
		words++;
	return *words;
}

/* begins with one, */
static inline bool words_begin(const char *s, const char *const *words)
{
	while (*words && strncmp(s, *words, strlen(*words)))
		words++;
	return *words;
}

/* or contains one. */
static inline bool words_in(const char *s, size_t n, const char *const *words)
{
	while (*words && !memmem(s, n, *words, strlen(*words)))
		words++;
	return *words;
}

/* Whether the character can be part of a name in program text. */
static inline bool word_has(char c)
{
	return c == '_' || isalnum((unsigned char)c);
}

/* A spreadsheet takes such a cell for a formula, which may run a program: an apostrophe in front
 * makes it a text. A cell that begins with an apostrophe gets another one, so that readers can
 * always remove the first. */
static inline bool begins_formula(const char *s, size_t len)
{
	return len && memchr("=+-@'\t\r", s[0], 7);
}
