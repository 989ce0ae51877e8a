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
	OPTION_LIMIT,	   /* struct option_amount, bytes or a share; `initial` is a percentage */
	OPTION_WORD,	   /* const char *, one of `words`; NULL if not given */
	OPTION_CLASS,	   /* int, a category; -1: not given, or the word in `words` */
	OPTION_MOMENT,	   /* struct moment_query */
	OPTION_MANY,	   /* char **, a word for each time it is given; ends with NULL */
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
	long initial;	    /* of a number, limit, class or moment that is not given */
	const char *words;  /* its values, separated by spaces; for completions */
	long least, most;   /* of a given number, figure or size; most: 0 = no limit */
	const char *needed; /* why the option is required */
	const char *alone;  /* its value if an option or "--" follows; NULL: not allowed */
	bool no_json;	    /* for a switch that prints another format than JSON */
	bool of_one;	    /* not passed on if the command runs for several recordings */
};

/* A row for a member of the struct `type`. The last arguments set further members of the row. */
#define OPTION_ROW(type, member, long_name, short_name, of_kind, value, text, ...)               \
	{                                                                                        \
		.name = (long_name), .letter = (short_name), .kind = OPTION_##of_kind,           \
		.offset = offsetof(type, member), .argument = (value), .help = text, __VA_ARGS__ \
	}

enum operand_kind {
	OPERAND_ONE = 1,  /* const char * */
	OPERAND_OPTIONAL, /* const char *, NULL if not given */
	OPERAND_REST,	  /* char **, the remaining words, at least one; options end before it */
	OPERAND_MANY,	  /* char **, at least one, ends with NULL; options may follow */
	OPERAND_RUN,	  /* const char *, a recording; a folder or several files are one run */
};

struct operand_row {
	const char *name; /* NULL ends the table */
	enum operand_kind kind;
	size_t offset;
};

struct command;

extern const char options_classes[]; /* names of all classes, each followed by a space */

/* Options of every command. */
struct options_common {
	bool json;
	bool help;
	bool no_pager;
	const char *rank; /* NULL: none was chosen */
	char **files;	  /* all words of an OPERAND_RUN, ends with NULL; or NULL */
	/* The command's own options as they were given, "--name=value", without those with of_one.
	 * Ends with NULL; or NULL. */
	char **given;
};

/* Options of every command that reads recordings. */
extern const struct option_row options_of_ranks[];

/* Allocates the struct of the command's options with all defaults; options_free frees it. */
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

/* The word of the list that is closest to `word`, or NULL. next(ctx, i) ends the list with NULL. */
const char *options_guess(const char *word, const char *(*next)(const void *ctx, size_t i),
			  const void *ctx);
