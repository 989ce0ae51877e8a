/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison as a document, and how it is printed. */
#pragma once

#include "../answers/columns.h"
#include "../recording/owner_words.h"
#include "diff.h"

#define DIFF_NAME 38 /* columns of the first column of a table */

struct diff_document {
	struct row_diff row;
	const struct diff *diff;
	struct diff_groups modules, lines;
	/* State of the current row. */
	const struct diff_finding *finding;
	struct diff_ground grounds[DIFF_GROUNDS];
	char not_compared[DIFF_NOT_COMPARED];
	char words[OWNER_WORDS + 48];
};

void diff_document(struct diff_document *doc, const struct diff *d);
void diff_document_free(struct diff_document *doc);

/* The columns of all tables: what changed, before, after, by how much. */
#define DIFF_COLUMNS(title, table, name, ...)                                   \
	{                                                                       \
		TEXT_COLUMN(title, table##_##name, 2, -DIFF_NAME, __VA_ARGS__), \
			TEXT_COLUMN("old", table##_bytes_old, 1, 11),           \
			TEXT_COLUMN("new", table##_bytes_new, 1, 11),           \
			TEXT_COLUMN("change", table##_delta, 1, 12),            \
	}

/* Prints text, or Markdown if out is Markdown. */
void diff_print(const struct diff_document *doc, struct emit *out, long top);
