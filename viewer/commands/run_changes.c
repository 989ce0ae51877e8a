/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The changes of `run --with`. Their modules (python/gpumemtrace/changes) are embedded in the tool
 * and are written into a folder for this run, which comes first on PYTHONPATH. Python checks the
 * names before the program starts, and reports the results after its end.
 */
#include "run_changes.h"

#include "../base/plain_file.h"
#include "../base/shell.h"
#include "../recording/owners.h"

#define SET "GPUMEMTRACE_WITH"
#define START                                                                   \
	"import sys, types; p = sys.modules[\"c\"] = types.ModuleType(\"c\"); " \
	"p.__path__ = [sys.argv[1]]; from c.changes_tell import main; main()"

#define CHANGES "changes/"

extern const char asset_python_modules[], asset_end_python_modules[]; /* as in question.c */

static int write_modules(const char *folder)
{
	char path[PATH_MAX + 64];

	for (const char *name = asset_python_modules, *text; name < asset_end_python_modules;
	     name = text + strlen(text) + 1) {
		const char *file = name + strlen(CHANGES);
		bool bad;
		FILE *f;

		text = name + strlen(name) + 1;
		if (strncmp(name, CHANGES, strlen(CHANGES)))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder,
			 strcmp(file, "changes_site.py") ? file : "sitecustomize.py");
		f = fopen(path, "w");
		bad = !f || fputs(text, f) < 0;
		if ((f && fclose(f)) || bad)
			return say_unreadable("%s cannot be written: %s", path, strerror(errno));
	}
	return 0;
}

/* Removes the folder, and the compiled modules that Python wrote into it. */
void run_changes_drop(struct run_changes *c)
{
	char compiled[PATH_MAX + 16];

	if (!c->folder[0])
		return;
	snprintf(compiled, sizeof(compiled), "%s/__pycache__", c->folder);
	folder_remove(compiled);
	folder_remove(c->folder);
}

/* The Python that runs the command, else $GPUMEMTRACE_PYTHON or python3. */
static const char *python_of(char *const *command)
{
	const char *named = getenv("GPUMEMTRACE_PYTHON");

	if (!strncmp(owners_base(command[0]), "python", 6))
		return command[0];
	return named && *named ? named : "python3";
}

/* Hands each line of the answer to `take`. False: Python did not answer. */
static bool ask_python(struct run_changes *c, const char *what,
		       void (*take)(struct run_changes *c, char *line))
{
	char *text, *line = NULL, python[SHELL_WORD], folder[SHELL_WORD];
	size_t room = 0;
	FILE *answer;
	bool whole;

	if (asprintf(&text, "%s -ISXutf8 -c '" START "' %s %s", shell_word(c->python, python),
		     shell_word(c->folder, folder), what) < 0)
		return false;
	answer = popen(text, "r");
	while (answer && getline(&line, &room, answer) > 0) {
		line[strcspn(line, "\n")] = 0;
		take(c, line);
	}
	whole = answer && !pclose(answer);
	free(line);
	free(text);
	return whole;
}

/* "wrong SENTENCE" or "set NAME=VALUE" */
static void take_checked(struct run_changes *c, char *line)
{
	char *value = strchr(line, '=');

	if (!strncmp(line, "wrong ", 6)) {
		c->code = say_usage("%s", line + 6);
	} else if (!strncmp(line, "set ", 4) && value) {
		*value = 0;
		setenv(line + 4, value + 1, 1);
	}
}

/* "made COUNT CHANGE<tab>SENTENCE<tab>ALTERNATIVE" */
static void take_made(struct run_changes *c, char *line)
{
	struct row_run_change row = { 0 };
	char *name, *tab = strchr(line, '\t'), *last = strrchr(line, '\t');

	if (strncmp(line, "made ", 5) || !tab || tab == last)
		return;
	row.times = strtoull(line + 5, &name, 10);
	*tab = *last = 0;
	row.has_instead = last[1];
	row.instead = need_text(last + 1);
	row.change = need_text(name + 1);
	row.text = need_text(tab + 1);
	c->made = need_grow(c->made, &c->room, c->count + 1, sizeof(*c->made));
	c->made[c->count++] = row;
	if (!row.times)
		c->missed = true;
}

/* Sets the environment variable with the names, separated by semicolons. */
static void set_names(char **names)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	for (; *names; names++)
		fprintf(f, ";%s", *names);
	fclose(f);
	setenv(SET, text + 1, 1);
	free(text);
}

int run_changes_begin(struct run_changes *c, char **names, char *const *command)
{
	*c = (struct run_changes){ .folder = "" };
	if (!names || !names[0])
		return 0;
	set_names(names);
	c->python = python_of(command);
	c->code = folder_make(c->folder, "changes");
	if (!c->code)
		c->code = write_modules(c->folder);
	if (!c->code && !ask_python(c, "check", take_checked) && !c->code)
		c->code = say_usage("--with needs Python 3.8 or later, and %s is not that",
				    c->python);
	return c->code;
}

void run_changes_end(struct run_changes *c)
{
	if (!c->folder[0])
		return;
	unsetenv("LD_PRELOAD"); /* Python itself is not recorded */
	ask_python(c, "tell", take_made);
	run_changes_drop(c);
}

void run_changes_say(const struct run_changes *c)
{
	for (size_t i = 0; i < c->count; i++)
		say_note("%s%s: %s", c->made[i].times ? "" : "not made: ", c->made[i].change,
			 c->made[i].text);
}
