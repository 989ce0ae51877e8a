/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command of the tool: one file cmd_NAME.c that defines `const struct command command_NAME`, and
 * one row in commands.def.
 */
#ifndef VIEWER_COMMAND_H
#define VIEWER_COMMAND_H

#include "options.h"

struct emit;
struct recording;

struct command {
	const char *name;
	const char *summary; /* one line for the list */
	const char *text;    /* a paragraph for the command's own help */
	const struct option_row *options;
	const struct operand_row *operands;
	size_t size;			   /* of the struct that the two tables fill */
	void (*defaults)(void *options);   /* may be NULL: all zero */
	int (*check)(const void *options); /* may be NULL; 0, or said what is wrong with them */
	/* One of the two. An answer is of the recording `file`, open while it runs. Exit codes. */
	int (*run)(const void *options, struct emit *out);
	int (*answer)(const void *options, struct emit *out, struct recording *r);
	size_t file; /* offset of its path in the options */
};

#define COMMAND(name) extern const struct command command_##name;
#include "commands.def"
#undef COMMAND

#endif
