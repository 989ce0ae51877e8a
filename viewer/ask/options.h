/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command's options as a table that fills the command's own struct; the help text is made from
 * the same table.
 */
#pragma once

#include "../base/human.h"
#include "../moments/moments.h"

enum option_kind {
	OPTION_SWITCH = 1, /* bool */
	OPTION_TEXT,	   /* const char * */
	OPTION_NUMBER,	   /* long */
	OPTION_FIGURE,	   /* double, above zero; 0 if not given */
	OPTION_SIZE,	   /* struct option_amount, bytes */
	OPTION_LIMIT,	   /* struct option_amount, bytes or a share; `initial` is one in % */
	OPTION_WORD,	   /* const char *, one of `words`; NULL if not given */
	OPTION_CLASS,	   /* int, a category; -1: none was given, or the one word in `words` */
	OPTION_MOMENT,	   /* struct moment_query */
	OPTION_MANY,	   /* char **, each time it is given one more, a NULL behind the last */
};

struct option_amount {
	const char *text; /* as it was given */
	bool given;
	struct amount amount;
};

struct option_row {
	const char *name; /* without "--"; NULL ends the table */
	char letter;	  /* 0 = none */
	enum option_kind kind;
	size_t offset;
	const char *argument; /* its name in the help; NULL for a switch */
	const char *help;
	long initial;	    /* of a number, a class or a moment, where it is not given */
	const char *words;  /* what it can be, a space between two; completions offer them */
	long least, most;   /* of a number that is given; most: 0 = any */
	const char *needed; /* why the option is required */
	const char *alone;  /* its value if an option or "--" follows; NULL: not allowed */
	bool no_json;	    /* for a switch that prints another format than JSON */
	bool of_one;	    /* of several recordings only one gets it, or each its own */
};

/* A row of the struct `type`; behind it what else there is to say of it. */
#define OPTION_ROW(type, member, long_name, short_name, of_kind, value, text, ...)               \
	{                                                                                        \
		.name = (long_name), .letter = (short_name), .kind = OPTION_##of_kind,           \
		.offset = offsetof(type, member), .argument = (value), .help = text, __VA_ARGS__ \
	}

enum operand_kind {
	OPERAND_ONE = 1,  /* const char * */
	OPERAND_OPTIONAL, /* const char *, NULL if not given */
	OPERAND_REST,	  /* char **, all that is left, at least one; options end before it */
	OPERAND_MANY,	  /* char **, at least one, a NULL behind the last; options may follow */
	OPERAND_RUN,	  /* const char *, a recording; several, or a folder, are one run */
};

struct operand_row {
	const char *name; /* NULL ends the table */
	enum operand_kind kind;
	size_t offset;
};

struct command;

extern const char options_classes[]; /* names of all classes, a space behind each */

/* Options of every command. */
struct options_common {
	bool json;
	bool help;
	bool no_pager;
	const char *rank; /* NULL: none was chosen */
	char **files;	  /* all of an OPERAND_RUN, a NULL behind the last */
	/* The command's own options as they were given, "--name=value", without those of one
	 * recording; a NULL behind the last, or NULL. */
	char **given;
};

/* Options of every command that reads recordings. */
extern const struct option_row options_of_ranks[];

/* The struct of the command's options, all at their defaults; options_free frees it. */
void *options_new(const struct command *c);

/* A text member of the options. */
static inline const char **options_text(void *options, size_t offset)
{
	return (const char **)((char *)options + offset);
}

/* Returns 0, or EXIT_USAGE after an error message. */
int options_parse(const struct command *c, char **argv, void *into, struct options_common *common);

void options_free(const struct command *c, void *into, struct options_common *common);

void options_help(const struct command *c, FILE *out);

/* The word of the list that was probably meant by `word`, or NULL. next(ctx, i) = NULL ends the
 * list. */
const char *options_guess(const char *word, const char *(*next)(const void *ctx, size_t i),
			  const void *ctx);
