/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings made of memory snapshots, as `import` and `attach` make and describe them. */
#ifndef VIEWER_IMPORT_MADE_H
#define VIEWER_IMPORT_MADE_H

#include "../documents/document.h"
#include "../recording/recording.h"

/* 0, or a sentence was said and the exit code. */
int import_make(const char *snapshot, const char *output);

/* Opens what was made and counts its events. */
int import_look(struct recording *r, const char *file, uint64_t *events);

/* What the snapshot lacks stands in the recording as facts: `rows` of struct row_import_note, for a
 * list whose context is the recording's definitions. */
bool import_note_row(void *defs, size_t i, struct row_import_note *row);
size_t import_note_rows(const struct recording *r);

#endif
