/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings made from memory snapshots by `import` and `attach`. */
#pragma once

#include "../answers/document.h"
#include "../recording/recording.h"

/* Returns 0, or an exit code after one error message. */
int import_make(const char *snapshot, const char *output);

/* Opens the new recording and counts its events. */
int import_look(struct recording *r, const char *file, uint64_t *events);

/* Rows about parts that the snapshot lacks, which the recording stores as facts. */
struct rows_import_note import_notes(struct recording *r);
