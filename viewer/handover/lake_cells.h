/* SPDX-License-Identifier: Apache-2.0 */
/* Cells by the names of their columns. */
#ifndef VIEWER_LAKE_CELLS_H
#define VIEWER_LAKE_CELLS_H

#include "../recording/owners.h"
#include "lake.h"

#define put_int(w, table, column, n) \
	lake_int((w), LAKE_##table, LAKE_##table##_##column, (int64_t)(n))
#define put_flag(w, table, column, yes) lake_flag((w), LAKE_##table, LAKE_##table##_##column, (yes))
#define put_text(w, table, column, s)	lake_text((w), LAKE_##table, LAKE_##table##_##column, (s))

/* 0 is null. */
#define put_known(w, table, column, n)                     \
	do {                                               \
		uint64_t known_ = (uint64_t)(n);           \
		if (known_)                                \
			put_int(w, table, column, known_); \
	} while (0)

#define put_owner(w, table, owner_, module_)                 \
	do {                                                 \
		const struct owner *of_ = (owner_);          \
		put_text(w, table, function, of_->function); \
		put_text(w, table, file, of_->file);         \
		put_known(w, table, line, of_->line);        \
		put_text(w, table, module, (module_));       \
	} while (0)

/* Whose run it is: the value of column i of the table of recordings, and the column's name. */
enum { LAKE_IDENTITY = 12 };
struct defs_text lake_identity(const struct defs *d, size_t i, const char **name);

/* Takes out of a command what names one run of it. */
void lake_program(char *command);

#endif
