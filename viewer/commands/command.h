/* SPDX-License-Identifier: Apache-2.0 */
/* A command of the tool: what it takes stands in commands.def, what it does in cmd_NAME.c. */
#ifndef VIEWER_COMMAND_H
#define VIEWER_COMMAND_H

#include "../answers/account.h"
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

/* How a command says that its recording is not whole (recording/run_state.h). */
enum command_part {
	PART_LINE, /* behind its text; JSON gets a note on stderr */
	PART_NOTE, /* always a note: on stdout is what other programs read */
	PART_OWN,  /* in its answer itself, or it has no figures */
};

/* What folders of several runs are to it, each named for itself. */
enum command_runs {
	COMMAND_LAST_RUN,    /* the one that began last is meant */
	COMMAND_EACH_RUN,    /* all: what it says of a recording is of that one alone */
	COMMAND_REFUSE_RUNS, /* it explains one run */
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
	enum command_runs runs;
	size_t file;	  /* offset of its path in the options */
	size_t other;	  /* of the second one */
	size_t output;	  /* of files: offset of the path to write to, */
	size_t format;	  /* and of the word that their names end with */
	size_t with_peak; /* not 0: offset of a bool, to say what `peak` says too */
	enum command_part part;
	/* Of pairs: leaves out what is written of one of them only; true if that was Markdown. */
	bool (*plain)(void *options);
};

/* Runs it on one recording. An exit code. */
int command_perform(const struct command *c, const void *options, struct emit *out);
/* Behind an answer that was not got through command_perform: which says so by itself of a recording
 * that it opened. whose: "old: ", where there are two. */
void command_say_part(const struct command *c, const struct recording *r, const char *whose,
		      struct emit *out);

/* clang-format off */
/* The C types of options and operands. */
#define TYPE_SWITCH   bool
#define TYPE_TEXT     const char *
#define TYPE_NUMBER   long
#define TYPE_FIGURE   double
#define TYPE_SIZE     struct option_amount
#define TYPE_LIMIT    struct option_amount
#define TYPE_WORD     const char *
#define TYPE_CLASS    int
#define TYPE_MOMENT   struct moment_query
#define TYPE_MANY     char **
#define TYPE_ONE      const char *
#define TYPE_OPTIONAL const char *
#define TYPE_REST     char **
#define TYPE_RUN      const char *

/* struct NAME_options */
#define COMMAND(c, ...) struct c##_options {
#define OPERAND(c, member, name, kind) TYPE_##kind member;
#define OPTION(c, member, name, letter, kind, ...) TYPE_##kind member;
#define KEEP(c, type, member) type member;
#define END(c) };
#include "commands.def"

/* run_NAME in cmd_NAME.c, by what it gets; an exit code. check_NAME: 0, or it was said what is
 * wrong with the options. */
#define GETS_RUN       struct emit *out
#define GETS_RECORDING struct emit *out, struct recording *r
#define GETS_TIMELINE  struct emit *out, struct timeline *t
#define GETS_MOMENT    struct emit *out, struct command_moment *m
#define COMMAND(c, gets, ...)                                          \
	extern const struct command command_##c;                       \
	int run_##c(const struct c##_options *o, GETS_##gets);
#define CHECK(c) int check_##c(struct c##_options *o);
#include "commands.def"
/* clang-format on */

bool plain_diff(void *options);

#endif
