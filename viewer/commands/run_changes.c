/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The changes of `run --with`. Their modules (python/gpumemtrace/changes) lie inside the tool and
 * are written into a folder for this run, which comes first on PYTHONPATH. Before the program
 * starts and after its end Python checks the names and says what was done.
 */
#include "run_changes.h"

#include <sys/wait.h>
#include <unistd.h>

#include "../base/asset.h"
#include "../base/plain_file.h"
#include "../base/shell.h"
#include "../recording/owners.h"

#define SET	 "GPUMEMTRACE_WITH"
#define START                                                                                  \
	" -ISXutf8 -c 'import sys, types; p = sys.modules[\"c\"] = types.ModuleType(\"c\"); "  \
	"p.__path__ = [sys.argv[1]]; from c.changes_tell import main; main()' "

#define SEARCH(name)
#define BOTH(name)
#define CORE(name)
#define LAKE(name)
#define NEEDED(name) extern const char asset_##name[], asset_end_##name[];
#define CHANGED(name) ASSET_FILE(name, "python/gpumemtrace/changes/" #name ".py");
#include "python_modules.def"

static const struct {
	const char *file, *text, *end;
} files[] = {
#define SEARCH(name)
#define BOTH(name)
#define CORE(name)
#define LAKE(name)
#define NEEDED(name) CHANGED(name)
#define CHANGED(name) { #name ".py", asset_##name, asset_end_##name },
#include "python_modules.def"
};

/* ---- the folder ---- */

static int write_modules(const char *folder)
{
	char path[PATH_MAX + 64];
	bool bad = false;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		size_t len = (size_t)(files[i].end - files[i].text);
		bool site = !strcmp(files[i].file, "changes_site.py");
		FILE *f;

		snprintf(path, sizeof(path), "%s/%s", folder,
			 site ? "sitecustomize.py" : files[i].file);
		f = fopen(path, "w");
		bad |= !f || fwrite(files[i].text, 1, len, f) != len;
		bad |= f && fclose(f);
	}
	return bad ? say_unreadable("%s cannot be written: %s", path, strerror(errno)) : 0;
}

/* Python writes compiled modules beside them. */
void run_changes_drop(struct run_changes *c)
{
	char compiled[PATH_MAX + 16];

	if (!c->folder[0])
		return;
	snprintf(compiled, sizeof(compiled), "%s/__pycache__", c->folder);
	folder_remove(compiled);
	folder_remove(c->folder);
}

/* ---- Python ---- */

static void append_word(FILE *f, const char *text)
{
	fputc('\'', f);
	for (; *text; text++)
		fputs(*text == '\'' ? "'\\''" : (char[]){ *text, 0 }, f);
	fputs("' ", f);
}

/* That of the program if it is started as such. */
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
	char *text = NULL, *line = NULL;
	size_t len, room = 0;
	FILE *f = open_memstream(&text, &len), *answer;
	bool whole;

	append_word(f, c->python);
	fputs(START, f);
	append_word(f, c->folder);
	append_word(f, what);
	for (char **name = c->names; *name; name++)
		append_word(f, *name);
	fclose(f);
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

/* "made COUNT CHANGE<tab>SENTENCE" */
static void take_made(struct run_changes *c, char *line)
{
	struct row_run_change row = { 0 };
	char *name, *tab = strchr(line, '\t');

	if (strncmp(line, "made ", 5) || !tab)
		return;
	row.times = strtoull(line + 5, &name, 10);
	*tab = 0;
	row.change = need_text(name + 1);
	row.text = need_text(tab + 1);
	c->made = need_grow(c->made, &c->room, c->count + 1, sizeof(*c->made));
	c->made[c->count++] = row;
	c->missed |= !row.times;
}

/* ---- around the program ---- */

static void set_environment(struct run_changes *c)
{
	const char *old = getenv("PYTHONPATH");
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	for (char **name = c->names; *name; name++)
		fprintf(f, "%s%s", name == c->names ? "" : ";", *name);
	fclose(f);
	setenv(SET, text, 1);
	free(text);
	f = open_memstream(&text, &len);
	fprintf(f, "%s%s%s", c->folder, old && *old ? ":" : "", old ? old : "");
	fclose(f);
	setenv("PYTHONPATH", text, 1);
	free(text);
}

int run_changes_begin(struct run_changes *c, char **names, char *const *command)
{
	*c = (struct run_changes){ .names = names };
	if (!names || !names[0])
		return 0;
	c->python = python_of(command);
	c->code = folder_make(c->folder, "changes");
	if (!c->code)
		c->code = write_modules(c->folder);
	if (!c->code && !ask_python(c, "check", take_checked) && !c->code)
		c->code = say_usage("--with needs Python 3.8 or later, and %s is not that",
				    c->python);
	if (!c->code)
		set_environment(c);
	return c->code;
}

void run_changes_end(struct run_changes *c)
{
	if (!c->folder[0])
		return;
	unsetenv("LD_PRELOAD"); /* nothing is to be recorded here */
	ask_python(c, "tell", take_made);
	run_changes_drop(c);
}

void run_changes_say(const struct run_changes *c)
{
	for (size_t i = 0; i < c->count; i++)
		say_note("%s%s: %s", c->made[i].times ? "" : "not made: ", c->made[i].change,
			 c->made[i].text);
}

bool run_changes_row(void *ctx, size_t i, struct row_run_change *row)
{
	*row = ((const struct run_changes *)ctx)->made[i];
	return true;
}
