/* SPDX-License-Identifier: Apache-2.0 */
/* import: a memory snapshot of PyTorch as a recording, and what the snapshot lacks. */
#include <unistd.h>

#include "../base/plain_file.h"
#include "../base/outfile.h"
#include "../recording/import.h"
#include "../recording/running.h"
#include "../ask/command.h"
#include "import_made.h"

static int print_import(struct emit *out, const struct import_options *o)
{
	static const struct text_column columns[] = { TEXT_COLUMN("", import_note_text, 2, -1) };
	struct recording r;
	struct row_import row = { .file = o->output };
	int rc = import_look(&r, o->output, &row.events);

	if (rc)
		return rc;
	row.notes = import_notes(&r);
	emit_document(out, import, &row);
	emit_line(out, "%s: %s", o->output, MANY(row.events, "event"));
	emit_columns(out, import_note, &row.notes, columns, 0);
	recording_close(&r);
	return rc;
}

int run_import(const struct import_options *o, struct emit *out)
{
	const char *other;
	int fd = file_open(o->file), rc;

	if (fd < 0)
		return say_unreadable("%s: %s", o->file, file_trouble(errno));
	close(fd);
	if (!import_recognises(o->file))
		return say_unreadable(
			"%s: %s", o->file,
			(other = recording_other_kind(o->file))
				? other
				: "not a memory snapshot of PyTorch (a pickle of protocol 2 to 5)");
	if (!o->output)
		return say_usage("-o OUT is missing: where to write the recording");
	rc = outfile_check(o->output);
	if (!rc)
		rc = running_refuse(o->output);
	if (!rc)
		rc = import_make(o->file, o->output);
	return rc ? rc : print_import(out, o);
}
