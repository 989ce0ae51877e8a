/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings from the environment. In the library this runs once, in the constructor, before the
 * program's own code. A value that cannot be read is noted, never fatal.
 */
#include "environment.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct word {
	const char *text;
	int value;
};

static const struct word switch_words[] = {
	{ "on", 1 }, { "1", 1 },  { "yes", 1 },	  { "true", 1 }, { "off", 0 },
	{ "0", 0 },  { "no", 0 }, { "false", 0 }, { NULL, 0 },
};

static const struct word stacks_words[] = {
	{ "all", GMT_STACKS_ALL },
	{ "python", GMT_STACKS_PYTHON },
	{ "native", GMT_STACKS_NATIVE },
	{ "none", GMT_STACKS_NONE },
	{ NULL, 0 },
};

static void say_misread_value(struct gmt_settings *s, const char *name, const char *value,
			      const char *why, const char *taken)
{
	size_t n = strlen(s->misread);

	snprintf(s->misread + n, sizeof(s->misread) - n, "%sGPUMEMTRACE_%s=%.40s %s (taken as %s)",
		 n ? "; " : "", name, value, why, taken);
}

static int read_word(struct gmt_settings *s, const char *name, const char *value,
		     const struct word *words, int standard)
{
	const char *taken = "";

	if (!value || !*value)
		return standard;
	for (const struct word *w = words; w->text; w++) {
		if (!strcmp(w->text, value))
			return w->value;
		if (w->value == standard && !*taken)
			taken = w->text;
	}
	say_misread_value(s, name, value, "is not understood", taken);
	return standard;
}

static int read_number(struct gmt_settings *s, const char *name, const char *value, int standard,
		       long least, long most)
{
	char *end, why[80], taken[24];
	long n;

	if (!value || !*value)
		return standard;
	n = strtol(value, &end, 10);
	if (!*end && n >= least && n <= most)
		return (int)n;
	snprintf(why, sizeof(why), "is no number from %ld to %ld", least, most);
	snprintf(taken, sizeof(taken), "%d", standard);
	say_misread_value(s, name, value, why, taken);
	return standard;
}

/* "2GiB", "500MB", "1g"; a number alone is bytes. */
static bool parse_size(const char *value, uint64_t *size)
{
	static const char units[] = "kmgt";
	const char *unit;
	char *end;
	unsigned long long n = strtoull(value, &end, 10);

	if (end == value || value[0] == '-')
		return false;
	unit = *end ? strchr(units, *end | 32) : NULL;
	for (const char *u = units; unit && u <= unit; u++)
		n = n < UINT64_MAX / 1024 ? n * 1024 : UINT64_MAX;
	end += unit ? 1 + (end[1] == 'i') : 0;
	end += unit || *end ? (*end | 32) == 'b' : 0;
	*size = n;
	return !*end;
}

static uint64_t read_size(struct gmt_settings *s, const char *name, const char *value,
			  uint64_t standard, uint64_t least)
{
	char taken[32];
	uint64_t n;

	if (!value || !*value)
		return standard;
	if (!parse_size(value, &n)) {
		say_misread_value(s, name, value, "is no size such as 2GiB", "no bound");
		return standard;
	}
	if (!n || n >= least)
		return n;
	snprintf(taken, sizeof(taken), "%" PRIu64 "MiB", least >> 20);
	say_misread_value(s, name, value, "is below the least", taken);
	return least;
}

/* Copies a text value. One that exceeds s->texts is cut: it is too long for a file name anyway. */
static const char *read_text(struct gmt_settings *s, size_t *used, const char *value,
			     const char *standard)
{
	char *kept = s->texts + *used;

	if (!value || !*value)
		return standard;
	snprintf(kept, sizeof(s->texts) - *used, "%s", value);
	*used += strlen(kept) + (*used + strlen(kept) + 1 < sizeof(s->texts));
	return kept;
}

void gmt_settings_read(struct gmt_settings *s)
{
	size_t used = 0;

	s->misread[0] = 0;
#define VALUE(name) getenv("GPUMEMTRACE_" #name)
#define TEXT(name, member, standard, meaning) \
	s->member = read_text(s, &used, VALUE(name), standard);
#define SWITCH(name, member, standard, meaning) \
	s->member = read_word(s, #name, VALUE(name), switch_words, standard);
#define CHOICE(name, member, standard, meaning) \
	s->member = (enum gmt_stacks)read_word(s, #name, VALUE(name), stacks_words, standard);
#define NUMBER(name, member, standard, least, most, meaning) \
	s->member = read_number(s, #name, VALUE(name), standard, least, most);
#define SIZE(name, member, standard, least, meaning) \
	s->member = read_size(s, #name, VALUE(name), standard, least);
#include "settings.def"
#undef VALUE
}
