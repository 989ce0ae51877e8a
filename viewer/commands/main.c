/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpumemtrace: records programs and answers questions about recordings, one command each.
 * commands.def lists the commands; the code of each is in its own cmd_NAME.c.
 */
#include <malloc.h>

#include "../../format/version.h"
#include "../base/arithmetic.h"
#include "question.h"
#include "../ask/command.h"
#include "completions.h"
#include "of_ranks.h"
#include "pager.h"

static const struct command *const commands[] = {
#define COMMAND(name, ...) &command_##name,
#include "../ask/commands.def"
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static int help(FILE *out)
{
	size_t widest = 0;

	fprintf(out, "gpumemtrace records where the GPU memory of a program goes.\n\n"
		     "usage: gpumemtrace COMMAND [OPTION...] [ARGUMENT...]\n\n");
	for (size_t i = 0; i < COMMANDS; i++)
		widest = arithmetic_most(widest, strlen(commands[i]->name));
	for (unsigned g = 0; g < COMMAND_GROUPS; g++) {
		fprintf(out, "%s:\n", command_groups[g]);
		for (size_t i = 0; i < COMMANDS; i++)
			if (commands[i]->group == g)
				fprintf(out, "  %-*s  %s\n", (int)widest, commands[i]->name,
					commands[i]->summary);
		fputs("\n", out);
	}
	fprintf(out,
		"More: gpumemtrace help COMMAND, man gpumemtrace. Every command takes --json.\n"
		"First steps:  gpumemtrace run -o run.gmt -- python train.py\n"
		"              gpumemtrace report run.gmt\n");
	return EXIT_OK;
}

static const struct command *find_command(const char *name)
{
	const struct command *const *c = FIRST_OF(x, commands, COMMANDS, !strcmp((*x)->name, name));

	return c ? *c : NULL;
}

static const char *command_name(UNUSED const void *ctx, size_t i)
{
	return i < COMMANDS ? commands[i]->name : NULL;
}

static int unknown_command(const char *name)
{
	const char *guess = options_guess(name, command_name, NULL);

	if (guess)
		return say_usage("unknown command \"%s\"; did you mean %s?", name, guess);
	return say_usage("unknown command \"%s\"; gpumemtrace --help lists them all", name);
}

static int help_on(const char *name)
{
	const struct command *c = name ? find_command(name) : NULL;

	if (!name)
		return help(stdout);
	if (!c)
		return unknown_command(name);
	options_help(c, stdout);
	return EXIT_OK;
}

static int perform(const struct command *c, void *options, const struct options_common *common,
		   struct emit *out)
{
	if (c == &command_advise && ((const struct advise_options *)options)->command)
		return advise_runs(options, out);
	if (c == &command_oom && ((const struct oom_options *)options)->command)
		return oom_try(options, out);
	return c->ranks ? of_ranks(c, options, common, out) : command_perform(c, options, out);
}

static int print_answer_of(const struct command *c, void *options,
			   const struct options_common *common)
{
	struct emit *terminal = emit_open(stdout, common->json);
	FILE *f = common->json || common->no_pager ? stdout : pager_open();
	struct emit *out = emit_like(terminal, f);
	int rc = c->check ? c->check(options) : 0;

	if (!rc)
		rc = perform(c, options, common, out);
	say_progress_end();
	if ((emit_close(out) || emit_close(terminal)) && rc == EXIT_OK)
		rc = say_unreadable("the output cannot be written");
	pager_close(f);
	return rc;
}

static int run_command(const struct command *c, char **argv)
{
	void *options = options_new(c);
	struct options_common common = { 0 };
	int rc;

	say_command(c->name);
	rc = options_parse(c, argv, options, &common);
	if (rc == EXIT_OK && common.help)
		options_help(c, stdout);
	else if (rc == EXIT_OK)
		rc = print_answer_of(c, options, &common);
	options_free(c, options, &common);
	return rc;
}

static int run_words(char **argv)
{
	const struct command *c;

	if (!argv[1]) {
		help(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return help(stdout);
	if (!strcmp(argv[1], "help"))
		return help_on(argv[2]);
	if (!strcmp(argv[1], "--version")) {
		printf("gpumemtrace %s\n", GMT_TOOL_VERSION);
		return EXIT_OK;
	}
	if (!strcmp(argv[1], "--completions"))
		return completions_print(stdout, argv[2], commands, COMMANDS);
	if (!strcmp(argv[1], SEARCH_FACTS))
		return search_facts();
	if (argv[1][0] == '-')
		return say_usage("unknown option %s; see gpumemtrace --help", argv[1]);
	c = find_command(argv[1]);
	return c ? run_command(c, argv + 2) : unknown_command(argv[1]);
}

/* Returns rc, or an error if stdout could not be written, for instance to a full disk. */
static int check_output(int rc)
{
	if ((fflush(stdout) || ferror(stdout)) && rc == EXIT_OK)
		return say_unreadable("the output cannot be written");
	return rc;
}

int main(UNUSED int argc, char **argv)
{
	static char line[4096];

	mallopt(M_MMAP_THRESHOLD, 1 << 17);	     /* freed arrays return to the system at once */
	setvbuf(stderr, line, _IOLBF, sizeof(line)); /* whole lines: ranks may share one log */
	return check_output(run_words(argv));
}
