/* SPDX-License-Identifier: Apache-2.0 */
#include "import_made.h"

#include "../base/outfile.h"
#include "../recording/import.h"

int import_make(const char *snapshot, const char *output)
{
	struct outfile file;
	int rc = outfile_begin(&file, output);

	if (rc)
		return rc;
	rc = import_file(snapshot, fileno(file.f));
	if (!rc)
		return outfile_commit(&file);
	outfile_drop(&file);
	return rc;
}

int import_look(struct recording *r, const char *file, uint64_t *events)
{
	struct tally t = { .defs = &r->defs };
	int rc = recording_open(r, file);

	if (rc)
		return rc;
	rc = recording_run(r, tally_event, &t);
	*events = t.events;
	return rc;
}

static bool import_note_row(void *ctx, size_t i, struct row_import_note *row)
{
	const struct defs *defs = ctx;
	const struct defs_meta *m = (const struct defs_meta *)defs->metas.items + i;

	*row = (struct row_import_note){ .text = m->value };
	return !strncmp(m->key.s, "note.", 5);
}

struct rows_import_note import_notes(struct recording *r)
{
	return (struct rows_import_note){ r->defs.metas.count, import_note_row, &r->defs };
}
