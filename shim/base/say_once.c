/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sentences for the user on stderr, by one write each. Any thread.
 */
#include "../capture.h"

#include "config.h"

#include <string.h>
#include <unistd.h>

void gmt_say(bool *once, const char *text)
{
	char line[640] = "gpumemtrace: ";
	size_t n = strlen(line), len = strnlen(text, sizeof(line) - n - 1);

	if (__atomic_exchange_n(once, true, __ATOMIC_RELAXED) || gmt_config.quiet)
		return;
	memcpy(line + n, text, len);
	n += len;
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, n) < 0)
		return;
}
