/* SPDX-License-Identifier: Apache-2.0 */
/* run: starts a program with the recording library preloaded, on a simulated device if wanted. */
#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../format/reader.h"
#include "../base/emit.h"
#include "../base/human.h"
#include "../base/outfile.h"
#include "../base/say.h"
#include "child.h"
#include "command.h"
#include "preload.h"

#define DEFAULT_OUTPUT "gpumemtrace.%p.gmt"

struct run_options {
	const char *output, *sim, *stacks;
	bool quiet;
	char **command;
};

static int check_stacks(const char *word)
{
	static const char *const words[] = { "python", "native", "all", "none" };

	for (size_t i = 0; word && i < 4; i++)
		if (!strcmp(word, words[i]))
			return 0;
	return word ? say_error(EXIT_USAGE, "--stacks is python, native, all or none, not \"%s\"",
				word)
		    : 0;
}

/* "CARD" or "CARD,N". */
static int set_card(const char *sim)
{
	const char *comma = strrchr(sim, ',');
	char card[256], *end;
	long count = 1;

	if (comma) {
		count = strtol(comma + 1, &end, 10);
		if (*end || end == comma + 1 || count < 1 || count > 64)
			return say_error(
				EXIT_USAGE,
				"--sim %s: after the comma stands a number of devices, 1 to 64",
				sim);
	}
	snprintf(card, sizeof(card), "%.*s", comma ? (int)(comma - sim) : (int)strlen(sim), sim);
	if (!card[0])
		return say_error(EXIT_USAGE, "--sim needs the name of a card, such as h100-80g");
	setenv("SIMGPU_CARD", card, 1);
	snprintf(card, sizeof(card), "%ld", count);
	setenv("SIMGPU_COUNT", card, 1);
	return 0;
}

static int set_up(const struct run_options *o)
{
	int rc = check_stacks(o->stacks);

	if (!rc && o->sim)
		rc = set_card(o->sim);
	if (!rc)
		rc = preload_set(o->sim != NULL);
	if (!rc && o->output && !strchr(o->output, '%'))
		rc = outfile_clear(o->output);
	if (rc)
		return rc;
	if (o->output)
		setenv("GPUMEMTRACE_OUTPUT", o->output, 1);
	if (o->stacks)
		setenv("GPUMEMTRACE_STACKS", o->stacks, 1);
	if (o->quiet)
		setenv("GPUMEMTRACE_QUIET", "1", 1);
	return 0;
}

/* What was written since the start: the first name, its events, how many files. */
struct found {
	char path[PATH_MAX];
	uint64_t events, files;
};

static void look_at(const char *path, const struct timespec *start, struct found *f)
{
	struct gmt_reader *r;
	struct stat st;
	uint64_t events;
	int err;

	if (stat(path, &st) || st.st_mtim.tv_sec < start->tv_sec ||
	    (st.st_mtim.tv_sec == start->tv_sec && st.st_mtim.tv_nsec < start->tv_nsec))
		return;
	r = gmt_reader_open(path, &err);
	if (!r)
		return;
	events = gmt_reader_info(r)->last_seq;
	gmt_reader_close(r);
	if (!f->files++ || events > f->events) {
		f->events = events;
		snprintf(f->path, sizeof(f->path), "%s", path);
	}
}

/* The output's name as a pattern for glob: anything for a placeholder, and the names that further
 * processes get. */
static void pattern_of(const char *output, const char *more, char *pattern, size_t room)
{
	size_t n = strlen(output), len = 0;
	bool gmt = n > 4 && !strcmp(output + n - 4, ".gmt");

	for (size_t i = 0; i < n - (gmt ? 4 : 0) && len + 8 < room; i++) {
		if (output[i] == '%' && output[i + 1]) {
			pattern[len++] = '*';
			i++;
			continue;
		}
		if (strchr("*?[\\", output[i]))
			pattern[len++] = '\\';
		pattern[len++] = output[i];
	}
	snprintf(pattern + len, room - len, "%s%s", more, gmt ? ".gmt" : "");
}

static struct found find(const char *output, const struct timespec *start)
{
	static const char *const more[] = { "", ".*" };
	char pattern[PATH_MAX];
	struct found f = { .files = 0 };
	glob_t names = { 0 };

	for (int i = 0; i < 2; i++) {
		pattern_of(output, more[i], pattern, sizeof(pattern));
		glob(pattern, i ? GLOB_APPEND : 0, NULL, &names);
	}
	for (size_t i = 0; i < names.gl_pathc; i++) {
		bool again = false;

		for (size_t j = 0; j < i && !again; j++)
			again = !strcmp(names.gl_pathv[i], names.gl_pathv[j]);
		if (!again)
			look_at(names.gl_pathv[i], start, &f);
	}
	globfree(&names);
	return f;
}

/* A program that decides by what its kernels computed may go astray on a simulated device. */
static void tell_why(int code)
{
	if (code && code < 126)
		say_note("the program ended with %d; if a value was the reason (a zero, an empty "
			 "tensor): kernels compute nothing on a simulated device",
			 code);
}

static void tell(const struct found *f, int code, bool json)
{
	struct emit *out;
	char n[HUMAN_MAX], more[64] = "";

	if (json) {
		out = emit_open(stderr, true);
		emit_object(out, NULL);
		emit_text(out, "file", f->path);
		emit_number(out, "events", f->events);
		emit_number(out, "files", f->files);
		emit_signed(out, "exit_code", code);
		emit_close(out);
		return;
	}
	say_command(NULL);
	if (f->files > 1)
		snprintf(more, sizeof(more), " and %" PRIu64 " more files", f->files - 1);
	if (f->files)
		say_note("%s%s, %s events; next: gpumemtrace report %s", f->path, more,
			 human_count(n, f->events), f->path);
	else
		say_note("nothing was recorded: the program allocated no CUDA memory");
}

static int run_run(const void *options, struct emit *out)
{
	const struct run_options *o = options;
	struct timespec start;
	struct found f;
	int code = set_up(o);

	if (code)
		return code;
	clock_gettime(CLOCK_REALTIME_COARSE, &start);
	code = child_run(o->command);
	f = find(getenv("GPUMEMTRACE_OUTPUT") ? getenv("GPUMEMTRACE_OUTPUT") : DEFAULT_OUTPUT,
		 &start);
	if (!o->quiet && (code < 126 || code > 127 || f.files))
		tell(&f, code, emit_json(out));
	if (!o->quiet && o->sim && f.files && !emit_json(out))
		tell_why(code);
	return code;
}

static const struct option_row options[] = {
	{ "output", 'o', OPTION_TEXT, offsetof(struct run_options, output), "FILE",
	  "recording to write; default " DEFAULT_OUTPUT },
	{ "sim", 0, OPTION_TEXT, offsetof(struct run_options, sim), "CARD[,N]",
	  "on N simulated devices (h100-80g, mycard=24GiB)" },
	{ "stacks", 0, OPTION_TEXT, offsetof(struct run_options, stacks), "WHICH",
	  "python, native, all (default) or none" },
	{ "quiet", 'q', OPTION_SWITCH, offsetof(struct run_options, quiet), NULL,
	  "do not say where the recording is" },
	{ 0 },
};

static const struct operand_row operands[] = {
	{ "COMMAND", OPERAND_REST, offsetof(struct run_options, command) },
	{ 0 },
};

const struct command command_run = {
	.name = "run",
	.summary = "run a program and record its GPU memory",
	.text = "Runs COMMAND with its arguments and records every allocation of GPU memory. The "
		"program, "
		"its output and its exit code stay as they are; one line on stderr says at the end "
		"where the "
		"recording is. In FILE %p stands for the process id, %h for the host, %r for the "
		"rank.",
	.options = options,
	.operands = operands,
	.size = sizeof(struct run_options),
	.run = run_run,
};
