/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of texts, and beginnings. */
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

/* A spreadsheet takes such a cell for a formula, which may run a program: an apostrophe in front
 * makes it a text. A cell that begins with an apostrophe gets another one, so that readers can
 * always remove the first. */
static inline bool begins_formula(const char *s, size_t len)
{
	return len && memchr("=+-@'\t\r", s[0], 7);
}
