/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings, read from the environment once, when the library is loaded. Read-only afterwards.
 */
#ifndef GMT_CONFIG_H
#define GMT_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

enum config_stacks {
	CONFIG_STACKS_NONE = 0,
	CONFIG_STACKS_PYTHON = 1,
	CONFIG_STACKS_NATIVE = 2,
	CONFIG_STACKS_ALL = 3, /* both */
};

struct config {
#define TEXT(name, member, standard, meaning)		     const char *member;
#define SWITCH(name, member, standard, meaning)		     bool member;
#define NUMBER(name, member, standard, least, most, meaning) int member;
#define CHOICE(name, member, standard, meaning)		     enum config_stacks member;
#define SIZE(name, member, standard, least, meaning)	     uint64_t member;
#include "../settings.def"
	/* GPUMEMTRACE_<name> has a value that means nothing; its default is used. NULL = none. */
	const char *misread;
};

extern struct config gmt_config;

void config_read(void);

#endif
