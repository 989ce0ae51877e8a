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

/* An option of the command: "--run-name", "run.dir=x". */
static bool names_a_run(const char *word, size_t len)
{
	size_t dashes = strspn(word, "-"), end = strcspn(word, "= ");
	bool found = is_in(" name id o ", word + dashes, end - dashes);

	if ((!dashes && end == len) || dashes > 2)
		return false;
	for (size_t i = dashes, n; i < end; i += n + 1) {
		for (n = 0; i + n < end && isalnum((unsigned char)word[i + n]); n++)
			;
		if (is_in(ABOUT, word + i, n))
			return false;
		found |= is_in(NAMING, word + i, n);
	}
	return found;
}

void lake_program(char *command)
{
	char *to = command;
	bool option = false; /* the word before names a run: this one may be its value */

	for (char *p = command; *p;) {
		size_t len = strcspn(p, " "), whole = len + (p[len] == ' ');
		bool value = option && *p != '-';

		option = !value && names_a_run(p, len);
		if (!value && !option) {
			memmove(to, p, whole);
			to += whole;
		}
		option &= !memchr(p, '=', len);
		p += whole;
	}
	while (to > command && to[-1] == ' ')
		to--;
	*to = 0;
}
