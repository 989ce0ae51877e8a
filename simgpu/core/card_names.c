/* SPDX-License-Identifier: Apache-2.0
 *
 * The error message for an unknown card: the option that named it, the known cards that were
 * probably meant, and all known cards. Any thread.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "devices.h"

#define NAME_MOST 64
#define FAR	  3 /* with so many wrong letters it is another name */

/* Edit distance between `a` and the first n letters of `b`, ignoring case. */
static size_t distance(const char *a, const char *b, size_t n)
{
	size_t row[NAME_MOST];

	if (n >= NAME_MOST || strlen(a) >= NAME_MOST)
		return NAME_MOST;
	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 1; *a; i++, a++) {
		size_t before = row[0];

		row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			size_t keep = row[j];
			size_t least =
				before + (tolower((unsigned char)*a) != (unsigned char)b[j - 1]);

			least = keep + 1 < least ? keep + 1 : least;
			row[j] = row[j - 1] + 1 < least ? row[j - 1] + 1 : least;
			before = keep;
		}
	}
	return row[n];
}

/* Edit distance from the name or the model in it (rtx4090 of rtx4090-24g), at most 1 if the name
 * begins with or contains `spec`. */
static size_t apart(const char *spec, const char *name)
{
	size_t whole = distance(spec, name, strlen(name));
	size_t model = distance(spec, name, strcspn(name, "-")), least;

	least = whole < model ? whole : model;
	if (least > 1 && strlen(spec) > 1 && strlen(spec) < NAME_MOST &&
	    (!strncasecmp(spec, name, strlen(spec)) ||
	     (strlen(spec) > 2 && strcasestr(name, spec))))
		return 1;
	return least;
}

static size_t nearest_distance(const char *spec)
{
	size_t least = FAR;
	struct sim_card card;

	for (size_t i = 0; card_find(NULL, i, &card); i++)
		if (apart(spec, card.name) < least)
			least = apart(spec, card.name);
	return least;
}

struct text {
	char *at;
	size_t room, n;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *t, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = t->n < t->room ? vsnprintf(t->at + t->n, t->room - t->n, format, args) : 0;
	va_end(args);
	t->n += n > 0 ? (size_t)n : 0;
}

/* Adds all names (spec NULL) or those at distance `far` from `spec`; returns how many. */
static size_t add_names(struct text *t, const char *spec, size_t far, const char *between)
{
	struct sim_card card;
	size_t named = 0;

	for (size_t i = 0; card_find(NULL, i, &card); i++)
		if (!spec || apart(spec, card.name) == far)
			add(t, "%s%s", named++ ? between : "", card.name);
	return named;
}

bool card_unknown(const char *by, const char *spec, char *text, size_t room)
{
	struct text t = { text, room, 0 };
	const char *size = strchr(spec, '=');
	struct sim_card card;
	size_t far;

	if (card_find(spec, 0, &card))
		return false;
	if (size && size > spec && size - spec < NAME_MOST) {
		add(&t,
		    "%s: \"%.*s\" is no size of a card; give one from 32MiB to 4TB, such as "
		    "%.*s=24GiB",
		    by, NAME_MOST, size + 1, (int)(size - spec), spec);
		return true;
	}
	add(&t, "%s: unknown card \"%.*s\"; ", by, NAME_MOST, spec);
	far = nearest_distance(spec);
	if (far < FAR) {
		add(&t, "did you mean ");
		add_names(&t, spec, far, " or ");
		add(&t, "? ");
	}
	add(&t, far < FAR ? "Known are " : "known are ");
	add_names(&t, NULL, 0, ", ");
	add(&t, ", or NAME=SIZE such as mycard=24GiB");
	return true;
}
