/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command without what names this one run of it ("--run-name exp-17", "output_dir=out/3"): runs
 * of which that is equal can be compared. The names of options decide, by their parts.
 */
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "lake_cells.h"

/* An option with such a part names the run, */
static const char *const naming[] = { "run", "exp",   "experiment", "output",  "out",	 "outdir",
				      "log", "logs",  "logdir",	    "logging", "save",	 "seed",
				      "tag", "tags",  "note",	    "notes",   "wandb",	 "mlflow",
				      "job", "trial", "session",    "comment", "results" };
/* unless it is about something else, */
static const char *const about[] = { "model",	  "data",      "dataset", "config",
				     "tokenizer", "optimizer", "steps",	  "step",
				     "every",	  "interval",  "freq",	  "epochs" };
/* and so does an option that is called so and nothing more. */
static const char *const alone[] = { "name", "id", "o" };

#define IS_IN(list, word, len) is_in(list, sizeof(list) / sizeof(*(list)), word, len)

static bool is_in(const char *const *list, size_t count, const char *word, size_t len)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(list[i]) == len && !strncasecmp(list[i], word, len))
			return true;
	return false;
}

/* name: without dashes in front and "=..." behind. */
static bool names_a_run(const char *name, size_t len)
{
	bool found = IS_IN(alone, name, len);

	for (size_t i = 0, n; i < len; i += n + 1) {
		for (n = 0; i + n < len && isalnum((unsigned char)name[i + n]); n++)
			;
		if (IS_IN(about, name + i, n))
			return false;
		found |= IS_IN(naming, name + i, n);
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
