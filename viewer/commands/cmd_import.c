/* SPDX-License-Identifier: Apache-2.0 */
/* import: a memory snapshot of PyTorch as a recording, and what the snapshot lacks. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../base/emit.h"
#include "../base/human.h"
#include "../base/outfile.h"
#include "../base/say.h"
#include "../import/import.h"
#include "../recording/recording.h"
#include "../recording/tally.h"
#include "command.h"

struct import_options {
	const char *file, *output;
};

static bool is_note(const struct defs_meta *m)
{
	return !strncmp(m->key.s, "note.", 5);
}

static void print_notes(struct emit *out, const struct defs *d)
{
	size_t count;
	const struct defs_meta *m = defs_metas(d, &count);
	static const struct emit_column columns[] = { { "text", NULL, EMIT_TEXT } };

	if (emit_json(out))
		emit_table(out, "notes", columns, 1);
	for (size_t i = 0; emit_json(out) && i < count; i++)
		if (is_note(&m[i]))
			emit_cell_text(out, m[i].value.s, m[i].value.len);
	if (emit_json(out))
		emit_table_end(out);
	for (size_t i = 0; i < count; i++)
		if (is_note(&m[i]))
			emit_line(out, "  %s", m[i].value.s);
}

static int print(struct emit *out, const struct import_options *o)
{
	struct recording r;
	struct tally t = { .defs = &r.defs };
	char n[HUMAN_MAX];
	int rc = recording_open(&r, o->output);

	if (rc)
		return rc;
	rc = recording_run(&r, UINT64_MAX, tally_event, &t);
	emit_object(out, NULL);
	if (emit_json(out)) {
		emit_text(out, "file", o->output);
		emit_number(out, "events", t.events);
	}
	emit_line(out, "%s: %s events", o->output, human_count(n, t.events));
	print_notes(out, &r.defs);
	emit_end(out);
	recording_close(&r);
	return rc;
}

/* Under another name until it is whole. */
static int convert(const struct import_options *o)
{
	char name[PATH_MAX];
	int fd, rc;

	if (snprintf(name, sizeof(name), "%s.%d.part", o->output, (int)getpid()) >=
	    (int)sizeof(name))
		return say_error(EXIT_USAGE, "the name of the output is too long");
	fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return say_error(EXIT_UNREADABLE, "%s: %s", name, strerror(errno));
	rc = import_file(o->file, fd);
	if ((close(fd) || (!rc && rename(name, o->output))) && !rc)
		rc = say_error(EXIT_UNREADABLE, "%s cannot be written: %s", o->output,
			       strerror(errno));
	if (rc)
		unlink(name);
	return rc;
}

static int run_import(const void *options, struct emit *out)
{
	const struct import_options *o = options;
	int rc;

	if (access(o->file, R_OK))
		return say_error(EXIT_UNREADABLE, "%s: %s", o->file, strerror(errno));
	if (!import_recognises(o->file))
		return say_error(EXIT_UNREADABLE,
				 "%s: not a pickle of protocol 2 to 5, as PyTorch's memory "
				 "snapshots are",
				 o->file);
	if (!o->output)
		return say_error(EXIT_USAGE, "-o OUT is missing: where to write the recording");
	rc = outfile_check(o->output);
	if (!rc)
		rc = convert(o);
	return rc ? rc : print(out, o);
}

static const struct option_row options[] = {
	{ "output", 'o', OPTION_TEXT, offsetof(struct import_options, output), "OUT",
	  "file to write (needed)" },
	{ 0 },
};

static const struct operand_row operands[] = {
	{ "SNAPSHOT", OPERAND_ONE, offsetof(struct import_options, file) },
	{ 0 },
};

const struct command command_import = {
	.name = "import",
	.summary = "make a recording of a PyTorch memory snapshot",
	.text = "Converts what torch.cuda.memory._dump_snapshot wrote (a pickle, also packed with "
		"zstd or gzip; nothing in it is executed) and says what it lacks. Every other "
		"command also takes such a snapshot as its FILE.",
	.options = options,
	.operands = operands,
	.size = sizeof(struct import_options),
	.run = run_import,
};
