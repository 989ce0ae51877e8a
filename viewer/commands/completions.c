/* SPDX-License-Identifier: Apache-2.0 */
#include "completions.h"

struct shell {
	const char *name;
	void (*print)(FILE *out, const struct command *const *commands, size_t count);
};

/* Words that are offered as the value of an option. */
static const char *words_of_option(const struct option_row *o)
{
	if (o->words && o->kind != OPTION_CLASS)
		return o->words;
	return o->kind == OPTION_CLASS	  ? options_classes
	       : o->kind == OPTION_MOMENT ? "peak end oom"
					  : NULL;
}

static bool runs_a_program(const struct command *c)
{
	return c->operands && c->operands->kind == OPERAND_REST;
}

/* Prints cases of the shell function: after these words of the line, offer these values. */
static void print_bash_values(FILE *out, const struct command *c)
{
	for (const struct option_row *o = c->options; o && o->name; o++) {
		if (!words_of_option(o))
			continue;
		fprintf(out, "\t'%s --%s'", c->name, o->name);
		if (o->letter)
			fprintf(out, " | '%s -%c'", c->name, o->letter);
		fprintf(out, ") COMPREPLY=($(compgen -W '%s' -- \"$word\")); return ;;\n",
			words_of_option(o));
	}
	if (runs_a_program(c))
		fprintf(out, "\t'%s --') COMPREPLY=($(compgen -c -- \"$word\")); return ;;\n",
			c->name);
}

static void print_names(FILE *out, const struct command *const *commands, size_t count)
{
	for (size_t i = 0; i < count; i++)
		fprintf(out, "%s ", commands[i]->name);
}

static void print_bash(FILE *out, const struct command *const *commands, size_t count)
{
	fprintf(out, "# bash completion for gpumemtrace\n"
		     "_gpumemtrace() {\n"
		     "\tlocal word=${COMP_WORDS[COMP_CWORD]} options=\n"
		     "\tCOMPREPLY=()\n"
		     "\tif [ \"$COMP_CWORD\" = 1 ]; then\n"
		     "\t\tCOMPREPLY=($(compgen -W '");
	print_names(out, commands, count);
	fprintf(out, "help --help --version' -- \"$word\"))\n"
		     "\t\treturn\n"
		     "\tfi\n"
		     "\tcase ${COMP_WORDS[1]} in\n");
	for (size_t i = 0; i < count; i++) {
		fprintf(out, "\t%s) options='", commands[i]->name);
		for (const struct option_row *o = commands[i]->options; o && o->name; o++)
			fprintf(out, "--%s ", o->name);
		for (const struct option_row *o = options_of_ranks; commands[i]->ranks && o->name;
		     o++)
			fprintf(out, "--%s ", o->name);
		fprintf(out, "--json --help --no-pager' ;;\n");
	}
	fprintf(out, "\tesac\n"
		     "\tcase \"${COMP_WORDS[1]} ${COMP_WORDS[COMP_CWORD - 1]}\" in\n"
		     "\t'help help') COMPREPLY=($(compgen -W '");
	print_names(out, commands, count);
	fprintf(out, "' -- \"$word\")); return ;;\n");
	for (size_t i = 0; i < count; i++)
		print_bash_values(out, commands[i]);
	fprintf(out, "\tesac\n"
		     "\tcase $word in\n"
		     "\t-*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n"
		     "\tesac\n"
		     "}\n"
		     "complete -o default -F _gpumemtrace gpumemtrace\n");
}

/* Escapes text within '...' in the shell, and brackets, colons and backslashes for zsh. */
static void print_quoted(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\'", out);
		else if (strchr("[]:\\", *text))
			fputc('\\', out);
		fputc(*text, out);
	}
}

static void print_zsh_option(FILE *out, const struct option_row *o)
{
	const char *words = words_of_option(o);

	fprintf(out, " \\\n\t\t");
	if (o->letter)
		fprintf(out, "'(-%c --%s)'{-%c,--%s}'[", o->letter, o->name, o->letter, o->name);
	else
		fprintf(out, "'--%s[", o->name);
	print_quoted(out, o->help);
	fputc(']', out);
	if (o->argument) {
		fputc(':', out);
		print_quoted(out, o->argument);
		if (words)
			fprintf(out, ":(%s)", words);
		else
			fputs(o->kind == OPTION_NUMBER || !strcmp(o->argument, "N") ? ": "
										    : ":_files",
			      out);
	}
	fputc('\'', out);
}

/* A list for each group, under its heading. */
static void print_zsh_commands(FILE *out, const struct command *const *commands, size_t count)
{
	fprintf(out, "_gpumemtrace_commands() {\n"
		     "\tlocal -a listed\n");
	for (unsigned g = 0; g < COMMAND_GROUPS; g++) {
		fprintf(out, "\tlisted=(");
		for (size_t i = 0; i < count; i++) {
			if (commands[i]->group != g)
				continue;
			fprintf(out, "\n\t\t'%s:", commands[i]->name);
			print_quoted(out, commands[i]->summary);
			fputc('\'', out);
		}
		fprintf(out, "\n\t)\n\t_describe -t commands-%u '%s' listed\n", g,
			command_groups[g]);
	}
	fprintf(out, "\tlisted=('help:what a command does, and its options')\n"
		     "\t_describe -t commands-help help listed\n"
		     "}\n");
}

static void print_zsh(FILE *out, const struct command *const *commands, size_t count)
{
	fprintf(out, "#compdef gpumemtrace\n");
	print_zsh_commands(out, commands, count);
	fprintf(out, "_gpumemtrace() {\n"
		     "\tif (( CURRENT == 2 )); then\n"
		     "\t\t_gpumemtrace_commands\n"
		     "\t\treturn\n"
		     "\tfi\n"
		     "\tshift words\n"
		     "\t(( CURRENT-- ))\n"
		     "\tcase $words[1] in\n"
		     "\thelp) _gpumemtrace_commands ;;\n");
	for (size_t i = 0; i < count; i++) {
		fprintf(out, "\t%s) _arguments%s", commands[i]->name,
			runs_a_program(commands[i]) ? " -S" : "");
		for (const struct option_row *o = commands[i]->options; o && o->name; o++)
			print_zsh_option(out, o);
		for (const struct option_row *o = options_of_ranks; commands[i]->ranks && o->name;
		     o++)
			print_zsh_option(out, o);
		fprintf(out,
			" \\\n\t\t'--json[print JSON]' '--help[say more]' '--no-pager[print "
			"long text as it is]' %s ;;\n",
			runs_a_program(commands[i]) ? "'*:::command: _normal'" : "'*:file:_files'");
	}
	fprintf(out, "\tesac\n"
		     "}\n"
		     "_gpumemtrace \"$@\"\n");
}

int completions_print(FILE *out, const char *shell, const struct command *const *commands,
		      size_t count)
{
	static const struct shell shells[] = { { "bash", print_bash }, { "zsh", print_zsh } };

	for (size_t i = 0; shell && i < sizeof(shells) / sizeof(shells[0]); i++) {
		if (strcmp(shells[i].name, shell))
			continue;
		shells[i].print(out, commands, count);
		return EXIT_OK;
	}
	return say_usage("--completions takes bash or zsh");
}
