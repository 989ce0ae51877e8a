/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command of the tool: one file cmd_NAME.c that defines `const struct command command_NAME`, and
 * one row in commands.def.
 */
#ifndef VIEWER_COMMAND_H
#define VIEWER_COMMAND_H

#include "../base/human.h"
#include "../base/say.h"
#include "../documents/columns.h"
#include "../moments/timeline.h"
#include "options.h"

/* What a command makes of a run with several recordings: a folder of them, or several files. */
enum command_ranks {
	COMMAND_ALONE, /* it knows of no ranks */
	COMMAND_ROWS,  /* a row for each (ranks/ranks_columns.def) */
	COMMAND_ONE,   /* what it shows is of one recording: --rank says which */
	COMMAND_FILES, /* the same, but into a folder it writes a file for each */
	COMMAND_ALL,   /* it reads them itself: `file` is a list, folders are replaced by theirs */
	COMMAND_PAIRS, /* of two runs, `file` and `other`, a row for each rank */
};

/* A moment of a recording and what says of its blocks what they are for. */
struct command_moment {
	struct model model;
	struct moment moment;
	struct stacks stacks;
	struct owners owners;
	struct classifier *classifier;
};

struct command {
	const char *name;
	const char *summary; /* one line for the list */
	const char *text;    /* a paragraph for the command's own help */
	const struct option_row *options;
	const struct operand_row *operands;
	size_t size;		     /* of the struct that the two tables fill */
	int (*check)(void *options); /* may be NULL; 0, or said what is wrong with them */
	/* One of these. An answer is of the recording `file`, of its device, of its moment: open
	 * while it runs. Exit codes. */
	int (*run)(const void *options, struct emit *out);
	int (*answer)(const void *options, struct emit *out, struct recording *r);
	int (*of_device)(const void *options, struct emit *out, struct timeline *t);
	int (*of_moment)(const void *options, struct emit *out, struct command_moment *m);
	size_t device, at; /* offsets of the long and of the struct moment_query that these take */
	enum command_ranks ranks;
	size_t file;	  /* offset of its path in the options */
	size_t other;	  /* of the second one */
	size_t output;	  /* of files: offset of the path to write to, */
	size_t format;	  /* and of the word that their names end with */
	size_t with_peak; /* not 0: offset of a bool, to say what `peak` says too */
	/* Of pairs: leaves out what is written of one of them only; true if that was Markdown. */
	bool (*plain)(void *options);
};

/* What it takes besides options: rows of the struct `type` that its tables fill. */
#define COMMAND_TAKES(type, ...)                                       \
	.size = sizeof(type), .operands = (const struct operand_row[]) \
	{                                                              \
		__VA_ARGS__,                                           \
		{                                                      \
			0                                              \
		}                                                      \
	}
#define OPERAND(type, member, name, kind)                      \
	{                                                      \
		(name), OPERAND_##kind, offsetof(type, member) \
	}

/* Of a command whose operand is FILE, the member of the struct `type` that holds it. */
#define COMMAND_OPERAND(type, member, kind, of_many)                                              \
	COMMAND_TAKES(type, OPERAND(type, member, "FILE", kind)), .file = offsetof(type, member), \
								  .ranks = (of_many)
#define COMMAND_FILE(type, operand, of_many) COMMAND_OPERAND(type, file, operand, of_many)
#define COMMAND_LIST(type)		     COMMAND_OPERAND(type, files, MANY, COMMAND_ALL)

#define COMMAND_DEVICE(type, f) .of_device = (f), .device = offsetof(type, device)
#define COMMAND_MOMENT(type, f) \
	.of_moment = (f), .device = offsetof(type, device), .at = offsetof(type, at)

/* Runs it on one recording. An exit code. */
int command_perform(const struct command *c, const void *options, struct emit *out);

#define COMMAND(name) extern const struct command command_##name;
#include "commands.def"
#undef COMMAND

#endif
