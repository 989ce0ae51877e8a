/* SPDX-License-Identifier: Apache-2.0 */
/* export: a recording in the format of another tool. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/human.h"
#include "../base/outfile.h"
#include "../base/say.h"
#include "../documents/document.h"
#include "../export/export.h"
#include "command.h"

static const struct export_format formats[] = {
#define EXPORT(name, moment, summary) { #name, summary, moment, export_##name },
#include "../export/export_formats.def"
#undef EXPORT
};

#define FORMATS (sizeof(formats) / sizeof(formats[0]))

static const char *format_name(const void *ctx, size_t i)
{
	(void)ctx;
	return i < FORMATS ? formats[i].name : NULL;
}

static int find_format(const struct export_options *o, const struct export_format **found)
{
	char names[160] = "";

	for (size_t i = 0; i < FORMATS; i++) {
		if (o->to && !strcmp(o->to, formats[i].name)) {
			*found = &formats[i];
			return 0;
		}
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
			 i ? ", " : "", formats[i].name);
	}
	if (!o->to)
		return say_error(EXIT_USAGE, "--to FORMAT is missing; there are %s", names);
	if (options_guess(o->to, format_name, NULL))
		return say_error(EXIT_USAGE, "unknown format %s; did you mean %s?", o->to,
				 options_guess(o->to, format_name, NULL));
	return say_error(EXIT_USAGE, "unknown format %s; there are %s", o->to, names);
}

static int check_options(const struct export_options *o, const struct export_format *format)
{
	struct moment_query q;
	struct stat in, out;

	if (!o->output)
		return say_error(EXIT_USAGE, "-o OUT is missing: where to write, - for stdout");
	if (o->at && !format->moment)
		return say_error(EXIT_USAGE, "--at is not for %s, which has the whole run",
				 format->name);
	if (o->device >= 0 && !format->moment)
		return say_error(EXIT_USAGE, "--device is not for %s, which has all devices",
				 format->name);
	if (o->stacks && !format->moment)
		return say_error(EXIT_USAGE, "--stacks is not for %s", format->name);
	if (o->stacks && strcmp(o->stacks, "all") && strcmp(o->stacks, "python") &&
	    strcmp(o->stacks, "native"))
		return say_error(EXIT_USAGE, "--stacks needs all, python or native, not %s",
				 o->stacks);
	if (!stat(o->output, &out) && !stat(o->file, &in) && in.st_dev == out.st_dev &&
	    in.st_ino == out.st_ino)
		return say_error(EXIT_USAGE, "the output must be another file than %s", o->file);
	if (strcmp(o->output, "-") && !lstat(o->output, &out) && !S_ISREG(out.st_mode))
		return say_error(EXIT_USAGE,
				 "%s exists and is not a plain file; choose another name",
				 o->output);
	if (outfile_holds_recording(o->output))
		return say_error(EXIT_USAGE, "%s is a recording; choose another name", o->output);
	return o->at ? moments_parse(o->at, &q) : 0;
}

/* A second run decides the classes; what follows asks for them. */
static int write_format(struct export *x, const struct export_format *format)
{
	int rc = moments_survey(&x->recording, &x->facts, NULL);

	if (rc) {
		model_free(&x->facts);
		return rc;
	}
	model_settle(&x->facts);
	stacks_init(&x->stacks, &x->recording.defs, symbols_new(&x->recording.defs));
	owners_init(&x->owners, &x->stacks);
	if (!format->moment)
		rc = series_open(&x->series, &x->recording, &x->facts, &x->owners);
	if (!rc)
		rc = format->write(x);
	if (!format->moment)
		series_close(&x->series);
	owners_free(&x->owners);
	symbols_free(x->stacks.symbols);
	stacks_free(&x->stacks);
	model_free(&x->facts);
	return rc;
}

static int cannot_write(const struct export_options *o, int why)
{
	return say_error(EXIT_UNREADABLE, "%s cannot be written: %s", o->output, strerror(why));
}

static int close_file(FILE *f)
{
	int rc = fflush(f) || ferror(f) ? errno : 0;

	if (f != stdout && fclose(f) && !rc)
		rc = errno;
	return rc;
}

/* Under another name until it is whole. */
static int write_file(struct export *x, const struct export_format *format)
{
	const char *output = x->options->output;
	char name[PATH_MAX];
	int fd, rc, why;

	if (snprintf(name, sizeof(name), "%s.%d.part", output, (int)getpid()) >= (int)sizeof(name))
		return say_error(EXIT_USAGE, "the name of the output is too long");
	fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return cannot_write(x->options, errno);
	x->f = fdopen(fd, "w");
	rc = write_format(x, format);
	why = close_file(x->f);
	if (!rc && !why && rename(name, output))
		why = errno;
	if (rc || why)
		unlink(name);
	return rc ? rc : why ? cannot_write(x->options, why) : 0;
}

static int write_stdout(struct export *x, const struct export_format *format)
{
	int rc, why;

	x->f = stdout;
	rc = write_format(x, format);
	why = close_file(x->f);
	return rc ? rc : why ? cannot_write(x->options, why) : 0;
}

static void print(struct emit *out, const struct export_options *o)
{
	struct row_export row;
	struct stat st;
	char n[HUMAN_MAX];

	if (stat(o->output, &st))
		return;
	row = (struct row_export){ .file = o->output,
				   .format = o->to,
				   .file_bytes = (uint64_t)st.st_size };
	emit_document(out, export, &row);
	emit_line(out, "%s: %s for %s", o->output, human_bytes(n, (uint64_t)st.st_size), o->to);
}

static int run_export(const void *options, struct emit *out)
{
	const struct export_options *o = options;
	struct export x = { .options = o };
	const struct export_format *format = NULL;
	int rc = recording_open(&x.recording, o->file);

	if (rc)
		return rc;
	rc = find_format(o, &format);
	if (!rc)
		rc = check_options(o, format);
	if (!rc && !strcmp(o->output, "-"))
		rc = write_stdout(&x, format);
	else if (!rc && !(rc = write_file(&x, format)))
		print(out, o);
	recording_close(&x.recording);
	return rc;
}

static void defaults(void *options)
{
	((struct export_options *)options)->device = -1;
}

static const struct option_row options[] = {
	{ "to", 't', OPTION_TEXT, offsetof(struct export_options, to), "FORMAT",
	  "torch, perfetto, speedscope, folded, pprof, csv.." },
	{ "output", 'o', OPTION_TEXT, offsetof(struct export_options, output), "OUT",
	  "file to write, - for stdout (needed)" },
	{ "at", 0, OPTION_TEXT, offsetof(struct export_options, at), "MOMENT",
	  "of profiles: as of live; default peak" },
	{ "device", 0, OPTION_NUMBER, offsetof(struct export_options, device), "N",
	  "of profiles; default: that with the highest peak" },
	{ "stacks", 0, OPTION_TEXT, offsetof(struct export_options, stacks), "WHICH",
	  "of profiles: all (default), python or native" },
	{ 0 },
};

static const struct operand_row operands[] = {
	{ "FILE", OPERAND_ONE, offsetof(struct export_options, file) },
	{ 0 },
};

const struct command command_export = {
	.name = "export",
	.summary = "write a recording in the format of another tool",
	.text = "Formats: torch (a pickle for PyTorch's memory_viz), perfetto (trace for Perfetto "
		"and "
		"chrome://tracing), speedscope, folded and pprof (bytes by stack, alive at a "
		"moment), "
		"csv, jsonl and arrow (a table of all blocks: class, size, life, stack). Each "
		"carries "
		"the class of every block.",
	.options = options,
	.operands = operands,
	.size = sizeof(struct export_options),
	.defaults = defaults,
	.run = run_export,
	.ranks = COMMAND_ONE,
	.file = offsetof(struct export_options, file),
};
