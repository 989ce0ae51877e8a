/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of texts. */
#ifndef VIEWER_ENDING_H
#define VIEWER_ENDING_H

#include <stdbool.h>
#include <string.h>

static inline bool ending_is(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && !memcmp(s + n - m, end, m);
}

/* Behind the last such character, or all of it: of "Net.forward", '.' it is "forward". */
static inline const char *ending_behind(const char *s, char c)
{
	const char *last = strrchr(s, c);

	return last ? last + 1 : s;
}

#endif
