/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of how a text ends or begins, and of words in it. */
#pragma once

#include "usual.h"

static inline bool ending_is(const char *s, const char *end)
{
	size_t n = strlen(s), length = strlen(end);

	return n >= length && !memcmp(s + n - length, end, length);
}

/* The part of s behind its last c, or all of s: "forward" for "Net.forward" and '.'. */
static inline const char *ending_behind(const char *s, char c)
{
	const char *last = strrchr(s, c);

	return last ? last + 1 : s;
}

/* A list of words for the functions below. */
#define ONE_OF(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* Whether the n characters at s are one of the words. */
static inline bool words_equal(const char *s, size_t n, const char *const *words)
{
	while (*words && (strlen(*words) != n || memcmp(s, *words, n)))
		words++;
	return *words;
}

/* Whether s begins with one of the words. */
static inline bool words_begin(const char *s, const char *const *words)
{
	while (*words && strncmp(s, *words, strlen(*words)))
		words++;
	return *words;
}

/* Whether the n characters at s contain one of the words. */
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

/* Whether a spreadsheet would take this cell for a formula, which could run a program. An
 * apostrophe in front makes it a text. A cell that begins with an apostrophe gets another one, so
 * that readers can always remove the first. */
static inline bool begins_formula(const char *s, size_t len)
{
	return len && memchr("=+-@'\t\r", s[0], 7);
}
