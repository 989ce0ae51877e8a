/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command without what names one run of it ("--run-name exp-17", "output_dir=out/3"), so that
 * runs can be compared. The names of options decide, by their parts.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lake_cells.h"

/* An option with such a part names the run, unless it is about something else. */
#define NAMING                                                                         \
	" run exp experiment output out outdir log logs logdir logging save seed tag " \
	"tags note notes wandb mlflow job trial session comment results "
#define ABOUT                                                                            \
	" model data dataset config tokenizer optimizer steps step every interval freq " \
	"epochs "

static bool is_in(const char *words, const char *word, size_t len)
{
	char key[24];

	if (!len || len + 3 > sizeof(key))
		return false;
	snprintf(key, sizeof(key), " %.*s ", (int)len, word);
	return strcasestr(words, key);
}

static bool names_a_run(const char *name, size_t len)
{
	bool found = is_in(" name id o ", name, len);

	for (size_t i = 0, n; i < len; i += n + 1) {
		for (n = 0; i + n < len && isalnum((unsigned char)name[i + n]); n++)
			;
		if (is_in(ABOUT, name + i, n))
			return false;
		found |= is_in(NAMING, name + i, n);
	}
	return found;
}

/* Whether a word of the command goes; *next: and the one behind it. */
static bool goes(const char *word, size_t len, bool *next)
{
	size_t dashes = strspn(word, "-"), name;
	const char *equal = memchr(word, '=', len);

	name = (equal ? (size_t)(equal - word) : len) - dashes;
	if ((!dashes && !equal) || dashes > 2 || !name || !names_a_run(word + dashes, name))
		return false;
	*next = !equal;
	return true;
}

void lake_program(char *command)
{
	char *to = command;
	bool next = false;

	for (char *p = command; *p;) {
		size_t len = strcspn(p, " "), whole = len + (p[len] == ' ');
		bool value = next && *p != '-';

		next = false;
		if (!value && !goes(p, len, &next)) {
			memmove(to, p, whole);
			to += whole;
		}
		p += whole;
	}
	while (to > command && to[-1] == ' ')
		to--;
	*to = 0;
}
