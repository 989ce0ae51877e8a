/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The documents that commands print, from documents.def. Each object is a struct of its members, so
 * that a command cannot write an undescribed member. A command fills the struct, emit_document
 * writes it as JSON, and emit_columns (columns.h) writes its lists as lines of text.
 *
 * A member that can be absent has a flag has_NAME before it. The rows of a list are made one by
 * one, while they are written.
 */
#pragma once

#include "../base/emit.h"
#include "../recording/defs.h"
#include "../recording/owners.h"

/* A list of strings, of which NULL is left out. */
struct words {
	size_t count;
	const char *(*get)(const void *ctx, size_t i); /* NULL: ctx is an array of strings */
	const void *ctx;
};

static inline const char *words_at(const struct words *w, size_t i)
{
	return w->get ? w->get(w->ctx, i) : ((const char *const *)w->ctx)[i];
}

/* A list of numbers. */
struct numbers {
	size_t count;
	int64_t (*get)(const void *ctx, size_t i);
	const void *ctx;
};

/* In an initializer: a member that can be absent, and the condition for it. */
#define MAYBE_THERE(member, when, ...) .has_##member = (when), .member = __VA_ARGS__

#define NO_NUMBER UINT64_MAX

/* The C types of members. */
#define C_NUMBER	uint64_t
#define C_COUNT		uint64_t
#define C_BYTES		uint64_t
#define C_NS		uint64_t
#define C_DURATION	uint64_t
#define C_ADDRESS	uint64_t
#define C_SIGNED	int64_t
#define C_COUNT_OR_NULL uint64_t /* NO_NUMBER = null */
#define C_BYTES_OR_NULL uint64_t
#define C_NS_OR_NULL	uint64_t
#define C_CHANGE	int64_t
#define C_WALL		int64_t
#define C_DECIMAL	double
#define C_FLAG		bool
#define C_TEXT		const char *
#define C_RAW		struct defs_text
#define C_CLASS		unsigned
#define C_CLASSES	const uint64_t *
#define C_WORDS		struct words
#define C_NUMBERS	struct numbers
#define C_FIGURES	struct numbers /* this and the next: only written by Python */
#define C_WHOLE		struct numbers
#define C_FACTS		struct rows_fact
#define C_OWNER		struct owner
#define C_LIST(t)	struct rows_##t
#define C_PART(t)	struct row_##t
#define C_MAP(t)	struct rows_##t

/* row_NAME: an object. rows_NAME: a list of them. fill makes the ith, or returns false: skip it;
 * NULL: ctx is an array of rows. */
#define TABLE(table, meaning, ...)                                          \
	struct row_##table;                                                 \
	struct rows_##table {                                               \
		size_t count;                                               \
		bool (*fill)(void *ctx, size_t i, struct row_##table *row); \
		void *ctx;                                                  \
	};                                                                  \
	struct row_##table {                                                \
		__VA_ARGS__                                                 \
	};                                                                  \
	extern const struct document document_##table;
#define MEMBER(table, name, type, meaning) C_##type name;
#define MAYBE(table, name, type, when, meaning) \
	bool has_##name;                        \
	C_##type name;
#define OWNER(table, meaning)	 struct owner owner;
#define ASIDE(table, name, type) C_##type name;
#include "documents.def"

/* AT_live_block_size: the index of a member. */
#define TABLE(table, meaning, ...)		enum { __VA_ARGS__ };
#define MEMBER(table, name, type, meaning)	AT_##table##_##name,
#define MAYBE(table, name, type, when, meaning) AT_##table##_##name,
#define OWNER(table, meaning)			AT_##table##_owner, AT_##table##_file, AT_##table##_line,
#define ASIDE(table, name, type)		AT_##table##_##name,
#include "documents.def"

enum member_type {
#define TYPE(name, json, unit) MEMBER_##name,
#include "member_types.def"
	MEMBER_FUNCTION, /* the function of a struct owner, at its start */
	MEMBER_LINE,	 /* its line */
};

#define ROW_MOST 1024 /* bytes of the largest row */

struct member {
	const char *name; /* NULL = only in text */
	enum member_type type;
	size_t offset, has; /* has: 1 + offset of its flag, 0 = always there */
	const struct document *part;
};

struct document {
	const char *name;
	const struct member *members;
	size_t count;
	/* Makes the next row of a struct rows_NAME from the *i-th on, in ROW_MOST bytes aligned for
	 * any type, and counts on; false: there is none. */
	bool (*next)(const void *rows, size_t *i, void *row);
};

/* JSON only, nothing in text. */
#define emit_document(out, table, row) \
	document_write(out, NULL, &document_##table, 1 ? (row) : (const struct row_##table *)NULL)

void document_write(struct emit *out, const char *key, const struct document *d, const void *row);

/* Text only: a line "name  value" for each member from `first` (NULL = all from the beginning) to
 * `last` (NULL = to the end), except lists, facts and objects. */
#define emit_lines(out, table, row, first, last)                                             \
	document_lines(out, &document_##table, 1 ? (row) : (const struct row_##table *)NULL, \
		       first, last)

void document_lines(struct emit *out, const struct document *d, const void *row, const char *first,
		    const char *last);
