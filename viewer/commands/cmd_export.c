/* SPDX-License-Identifier: Apache-2.0 */
/* export: a recording in the format of another tool. */
#include <sys/stat.h>
#include <unistd.h>

#include "../base/outfile.h"
#include "../base/plain_file.h"
#include "../export/export_events.h"
#include "../ask/command.h"

static const struct export_format formats[] = {
#define EXPORT(name, moment, head, summary) \
	{ #name, summary, moment, head, sizeof(head) - 1, export_##name },
#include "../export/export_formats.def"
};

#define FORMATS (sizeof(formats) / sizeof(formats[0]))

static const char *format_name(UNUSED const void *ctx, size_t i)
{
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
		text_add(names, sizeof(names), "%s%s", i ? ", " : "", formats[i].name);
	}
	if (!o->to)
		return say_usage("--to FORMAT is missing; there are %s", names);
	if (options_guess(o->to, format_name, NULL))
		return say_usage("unknown format %s; did you mean %s?", o->to,
				 options_guess(o->to, format_name, NULL));
	return say_usage("unknown format %s; there are %s", o->to, names);
}

static bool is_events(const struct export_options *o)
{
	return o->table && !strcmp(o->table, "events");
}

static int check_table(const struct export_options *o, const struct export_format *format)
{
	unsigned which[EVENT_COLUMNS], count;

	if (!o->table && !o->columns)
		return 0;
	if (strcmp(format->name, "arrow"))
		return say_usage("--table and --columns are not for %s, only for arrow",
				 format->name);
	if (!is_events(o) && o->columns)
		return say_usage("--columns is for --table events");
	return is_events(o) ? arrow_choose(export_event_columns, EVENT_COLUMNS, o->columns, which,
					   &count)
			    : 0;
}

/* Whether a file begins like a snapshot. A converted snapshot keeps the order of its keys. */
static bool is_snapshot(const char *path)
{
	static const char *const keys[] = { "device_traces", "segments", "total_size" };

	return ANY_OF(x, keys, sizeof(keys) / sizeof(*keys), outfile_starts_with(path, *x));
}

static int check_output(const struct export_options *o, const struct export_format *format)
{
	char what[64];
	int rc;

	if (file_same(o->output, o->file))
		return say_usage("the output must be another file than %s", o->file);
	snprintf(what, sizeof(what), "a file of --to %s", format->name);
	rc = outfile_check_kind(o->output, format->head, format->head_length, what);
	if (rc || access(o->output, F_OK))
		return rc;
	if (format->head_length ? strcmp(format->name, "torch") || is_snapshot(o->output)
				: ANY_OF(c, categories, CATEGORIES,
					 outfile_begins(o->output, c->words, strlen(c->words))))
		return 0;
	return outfile_refuse(o->output, what);
}

static int check_export_options(const struct export_options *o, const struct export_format *format)
{
	struct moment_query q;
	int rc;

	if (!o->output)
		return say_usage("-o OUT is missing: where to write, - for stdout");
	if (o->at && !format->moment)
		return say_usage("--at is not for %s, which has the whole run", format->name);
	if (o->device >= 0 && !format->moment)
		return say_usage("--device is not for %s, which has all devices", format->name);
	if (o->stacks && !format->moment)
		return say_usage("--stacks is not for %s", format->name);
	rc = check_table(o, format);
	if (rc)
		return rc;
	if (strcmp(o->output, "-")) /* - is stdout, not a file */
		rc = check_output(o, format);
	if (rc)
		return rc;
	return o->at ? moments_parse(o->at, &q) : 0;
}

static int write_format(struct export *x, const struct export_options *o,
			const struct export_format *format)
{
	int rc;

	if (is_events(o))
		return export_event_table(x);
	rc = moments_parse(o->at ? o->at : "peak", &x->query);
	if (rc)
		return rc;
	rc = timeline_read(&x->timeline, x->recording, &x->query);
	if (rc)
		return rc;
	rc = format->write(x);
	timeline_close(&x->timeline);
	return rc;
}

static int write_stdout(struct export *x, const struct export_options *o,
			const struct export_format *format)
{
	int rc;

	x->f = stdout;
	rc = write_format(x, o, format);
	if (!rc && (fflush(stdout) || ferror(stdout)))
		rc = say_unreadable("- cannot be written: %s", strerror(errno));
	return rc;
}

static int write_export(struct export *x, const struct export_options *o,
			const struct export_format *format)
{
	struct outfile file;
	int rc = outfile_begin(&file, o->output);

	if (rc)
		return rc;
	x->f = file.f;
	rc = write_format(x, o, format);
	if (!rc)
		return outfile_commit(&file);
	outfile_drop(&file);
	return rc;
}

static void print_written(struct emit *out, const struct export_options *o)
{
	struct row_export row;
	struct stat st;

	if (stat(o->output, &st))
		return;
	row = (struct row_export){ .file = o->output,
				   .format = o->to,
				   .file_bytes = (uint64_t)st.st_size };
	emit_document(out, export, &row);
	emit_line(out, "%s: %s for %s", o->output, B((uint64_t)st.st_size), o->to);
}

int run_export(const struct export_options *o, struct emit *out, struct recording *r)
{
	struct export x = { .file = o->file,
			    .recording = r,
			    .which = o->stacks,
			    .columns = o->columns,
			    .device = o->device };
	const struct export_format *format = NULL;
	int rc = find_format(o, &format);

	if (!rc)
		rc = check_export_options(o, format);
	if (!rc && !strcmp(o->output, "-"))
		rc = write_stdout(&x, o, format);
	else if (!rc && !(rc = write_export(&x, o, format)))
		print_written(out, o);
	return rc;
}
