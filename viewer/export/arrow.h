/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a table as an Arrow IPC file: a schema, record batches of up to 65536 rows, and an index
 * of them at the end. Everything between the first 8 bytes and the index is an Arrow stream, so
 * that a reader of a pipe can take batches as they come.
 */
#ifndef VIEWER_ARROW_H
#define VIEWER_ARROW_H

#include <stdio.h>

#include "arrow_batch.h"

struct arrow;

/* The columns belong to the caller and must outlive the writer. The schema is written at once. */
struct arrow *arrow_open(FILE *f, const struct arrow_column *columns, unsigned count);

/* The rows that are written next; arrow_flush writes them, once there is no room for more. */
struct arrow_batch *arrow_rows(struct arrow *a);
void arrow_flush(struct arrow *a);

/* Writes the remaining rows and the index. The file stays open; the caller checks its errors. */
void arrow_close(struct arrow *a);

#endif
