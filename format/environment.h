/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of the library, GPUMEMTRACE_*, from an environment. The library reads them when it
 * is loaded; `gpumemtrace run` looks at them before it starts a program. No malloc.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum gmt_stacks {
	GMT_STACKS_NONE = 0,
	GMT_STACKS_PYTHON = 1,
	GMT_STACKS_NATIVE = 2,
	GMT_STACKS_ALL = 3, /* both */
};

struct gmt_settings {
#define TEXT(name, member, standard, meaning)		     const char *member;
#define SWITCH(name, member, standard, meaning)		     bool member;
#define NUMBER(name, member, standard, least, most, meaning) int member;
#define CHOICE(name, member, standard, meaning)		     enum gmt_stacks member;
#define SIZE(name, member, standard, least, meaning)	     uint64_t member;
#include "settings.def"
	/* settings that cannot be read, and the values used instead, in one line; "" = none */
	char misread[512];
	char texts[8192]; /* copies of TEXT values: a program might overwrite its environment
			     (setproctitle) */
};

void gmt_settings_read(struct gmt_settings *s);
