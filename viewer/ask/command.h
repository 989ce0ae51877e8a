/* SPDX-License-Identifier: Apache-2.0 */
/* A command of the tool. Its options are listed in commands.def, its code is in cmd_NAME.c. */
#pragma once

#include "../answers/account.h"
#include "../base/human.h"
#include "../answers/columns.h"
#include "../moments/timeline.h"
#include "options.h"

/* How a command treats a run with several recordings: a folder of them, or several files. */
enum command_ranks {
	COMMAND_ALONE, /* it does not know ranks */
	COMMAND_ROWS,  /* a row for each (python/gpumemtrace/ranks/ranks_columns.py) */
	COMMAND_ONE,   /* it shows one recording: --rank says which */
	COMMAND_FILES, /* the same, but into a folder it writes one file per rank */
	COMMAND_ALL,   /* it reads them all itself: `file` is a list of files */
	COMMAND_PAIRS, /* of two runs, `file` and `other`, a row for each rank */
};

/* How a command reports that its recording is incomplete (recording/running.h). */
enum command_part {
	PART_LINE, /* a line after its text; a note on stderr with JSON */
	PART_NOTE, /* always a note, because other programs read its stdout */
	PART_OWN,  /* it says so in its answer, or has no figures */
};

/* How a command treats folders of several runs, each of which has a name. */
enum command_runs {
	COMMAND_LAST_RUN,    /* it uses the run that began last */
	COMMAND_EACH_RUN,    /* it uses all, one by one */
	COMMAND_REFUSE_RUNS, /* an error: it explains one run */
};

enum command_group {
#define GROUP(name, heading) COMMANDS_##name,
#include "command_groups.def"
	COMMAND_GROUPS
};

extern const char *const command_groups[COMMAND_GROUPS]; /* their headings */

struct command {
	const char *name;
	enum command_group group; /* where it stands in the help */
	const char *summary;	  /* one line for the list */
	const char *text;	  /* a paragraph for the command's own help */
	const struct option_row *options;
	const struct operand_row *operands;
	size_t size;		     /* of the struct that the two tables fill */
	int (*check)(void *options); /* or NULL; 0, or an exit code after an error message */
	/* Exactly one of these is set. All but `run` get the recording `file`, its device or its
	 * moment, which stays open meanwhile. They return exit codes. */
	int (*run)(const void *options, struct emit *out);
	int (*answer)(const void *options, struct emit *out, struct recording *r);
	int (*of_device)(const void *options, struct emit *out, struct timeline *t);
	int (*of_moment)(const void *options, struct emit *out, struct timeline *t,
			 struct moment *mo);
	size_t device, at; /* offsets of the long and of the struct moment_query that these take */
	enum command_ranks ranks;
	enum command_runs runs;
	size_t file;	  /* offset of its path in the options */
	size_t other;	  /* COMMAND_PAIRS: offset of the second path */
	size_t output;	  /* COMMAND_FILES: offset of the path to write to */
	size_t format;	  /* the same: offset of the format's name */
	size_t with_peak; /* not 0: offset of a bool that adds the output of `peak` */
	enum command_part part;
};

/* A question about recordings by its name, or NULL. */
const struct command *question_find(const char *name);
/* Runs the command on one recording. Returns an exit code. */
int command_perform(const struct command *c, const void *options, struct emit *out);
/* Reports an incomplete recording after an answer that did not come from command_perform, which
 * does so itself. whose: "old: ", if there are two. */
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

/* run_NAME in cmd_NAME.c, by its argument; returns an exit code. check_NAME: 0, or an exit code
 * after an error message about the options. */
#define GETS_RUN       struct emit *out
#define GETS_RECORDING struct emit *out, struct recording *r
#define GETS_TIMELINE  struct emit *out, struct timeline *t
#define GETS_MOMENT    struct emit *out, struct timeline *t, struct moment *mo
#define COMMAND(c, gets, ...)                                          \
	extern const struct command command_##c;                       \
	int run_##c(const struct c##_options *o, GETS_##gets);
#define CHECK(c) int check_##c(struct c##_options *o);
#include "commands.def"
/* clang-format on */

int html_page(const struct html_options *o, uint64_t *bytes); /* writes the page of html and open */

struct advise;
/* Prints the advice about one recording. try (NULL: none) first measures findings by running the
 * program. Returns an exit code. */
int advise_recording(const struct advise_options *o, const char *path,
		     int (*try)(void *ctx, struct advise *a), void *ctx, struct emit *out);
