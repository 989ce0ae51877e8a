/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings from the environment. Runs once, in the constructor, before the program's own code; a
 * value that means nothing is noted, never fatal.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

struct config gmt_config;

struct word {
	const char *text;
	int value;
};

static const struct word switch_words[] = {
	{ "1", 1 },   { "on", 1 }, { "yes", 1 },   { "true", 1 }, { "0", 0 },
	{ "off", 0 }, { "no", 0 }, { "false", 0 }, { NULL, 0 },
};

static const struct word stacks_words[] = {
	{ "all", CONFIG_STACKS_ALL },
	{ "python", CONFIG_STACKS_PYTHON },
	{ "native", CONFIG_STACKS_NATIVE },
	{ "none", CONFIG_STACKS_NONE },
	{ NULL, 0 },
};

static int read_word(const char *name, const char *value, const struct word *words, int standard)
{
	if (!value || !*value)
		return standard;
	for (; words->text; words++)
		if (!strcmp(words->text, value))
			return words->value;
	gmt_config.misread = name;
	return standard;
}

static int read_number(const char *name, const char *value, int standard, long least, long most)
{
	char *end;
	long n;

	if (!value || !*value)
		return standard;
	n = strtol(value, &end, 10);
	if (!*end && n >= least && n <= most)
		return (int)n;
	gmt_config.misread = name;
	return standard;
}

/* "2GiB", "500MB", "1g"; a number alone is bytes. */
static uint64_t read_size(const char *name, const char *value, uint64_t standard, uint64_t least)
{
	static const char units[] = "kmgt";
	unsigned long long n;
	const char *unit;
	char *end;

	if (!value || !*value || !strcmp(value, "0"))
		return standard;
	n = strtoull(value, &end, 10);
	unit = *end ? strchr(units, *end | 32) : NULL;
	for (const char *u = units; unit && u <= unit; u++)
		n = n < UINT64_MAX / 1024 ? n * 1024 : UINT64_MAX;
	end += unit ? 1 + (end[1] == 'i') : 0;
	end += unit || *end ? (*end | 32) == 'b' : 0;
	if (!*end && n >= least && value[0] != '-')
		return n;
	gmt_config.misread = name;
	return standard;
}

static const char *read_text(const char *value, const char *standard)
{
	return value && *value ? value : standard;
}

void config_read(void)
{
	struct config *c = &gmt_config;

#define VALUE(name)			      getenv("GPUMEMTRACE_" #name)
#define TEXT(name, member, standard, meaning) c->member = read_text(VALUE(name), standard);
#define SWITCH(name, member, standard, meaning) \
	c->member = read_word("GPUMEMTRACE_" #name, VALUE(name), switch_words, standard);
#define CHOICE(name, member, standard, meaning)                                                    \
	c->member = (enum config_stacks)read_word("GPUMEMTRACE_" #name, VALUE(name), stacks_words, \
						  standard);
#define NUMBER(name, member, standard, least, most, meaning) \
	c->member = read_number("GPUMEMTRACE_" #name, VALUE(name), standard, least, most);
#define SIZE(name, member, standard, least, meaning) \
	c->member = read_size("GPUMEMTRACE_" #name, VALUE(name), standard, least);
#include "../settings.def"
#undef VALUE
}
