/* SPDX-License-Identifier: Apache-2.0 */
#include "document.h"

#include <stdalign.h>

#include "../classes/classify.h"

/* ---- the tables ---- */

/* The part of a member: a list or an object has its own description, other types have none. */
enum {
#define TYPE(name, json, unit) PART_##name = 0,
#include "member_types.def"
};
#define PART_FACTS     (&document_fact)
#define PART_LIST(t)   (&document_##t)
#define PART_PART(t)   (&document_##t)
#define PART_MAP(t)    (&document_##t)
#define MEMBER_OWNER   MEMBER_FUNCTION
#define MEMBER_LIST(t) MEMBER_LIST
#define MEMBER_PART(t) MEMBER_PART
#define MEMBER_MAP(t)  MEMBER_MAP

/* clang-format off */
#define MEMBER(table, name, type, meaning) \
	{ #name, MEMBER_##type, offsetof(struct row_##table, name), 0, PART_##type },
#define MAYBE(table, name, type, when, meaning)                       \
	{ #name, MEMBER_##type, offsetof(struct row_##table, name), \
	  1 + offsetof(struct row_##table, has_##name), PART_##type },
#define OWNER(table, meaning)                                                              \
	{ "function", MEMBER_FUNCTION, offsetof(struct row_##table, owner.function), 0, NULL }, \
	{ "file", MEMBER_TEXT, offsetof(struct row_##table, owner.file), 0, NULL },         \
	{ "line", MEMBER_LINE, offsetof(struct row_##table, owner.line), 0, NULL },
#define ASIDE(table, name, type)\
	{ NULL, MEMBER_##type, offsetof(struct row_##table, name), 0, NULL },
#define TABLE(table, meaning, ...)                                                         \
	static const struct member members_of_##table[] = { __VA_ARGS__ };                 \
	static bool next_##table(const void *rows, size_t *i, void *row)                   \
	{                                                                                  \
		const struct rows_##table *r = rows;                                       \
		_Static_assert(sizeof(struct row_##table) <= ROW_MOST, "a larger ROW_MOST"); \
		while (*i < r->count) {                                                    \
			size_t at = (*i)++;                                                \
                                                                                           \
			memset(row, 0, sizeof(struct row_##table));                        \
			if (!r->fill)                                                      \
				memcpy(row, (struct row_##table *)r->ctx + at, sizeof(struct row_##table)); \
			if (!r->fill || r->fill(r->ctx, at, row))                          \
				return true;                                               \
		}                                                                          \
		return false;                                                              \
	}                                                                                  \
	const struct document document_##table = {                                         \
		#table, members_of_##table,                                                \
		sizeof(members_of_##table) / sizeof(struct member), next_##table           \
	};
#include "documents.def"
/* clang-format on */

/* ---- JSON ---- */

static void write_row(struct emit *out, const struct document *d, const char *row, size_t first);

/* The row is on the stack of each call, because rows can hold lists themselves. */
static void write_rows(struct emit *out, const struct member *m, const void *rows)
{
	alignas(max_align_t) char row[ROW_MOST];

	emit_array(out, m->name);
	for (size_t i = 0; m->part->next(rows, &i, row);)
		document_write(out, NULL, m->part, row);
	emit_end(out);
}

/* The first member of a row is its key. */
static void write_map(struct emit *out, const struct member *m, const void *rows)
{
	alignas(max_align_t) char row[ROW_MOST];
	const struct member *key = m->part->members;
	const char *name;

	emit_object(out, m->name);
	for (size_t i = 0; m->part->next(rows, &i, row);) {
		memcpy(&name, row + key->offset, sizeof(name));
		emit_object(out, name);
		write_row(out, m->part, row, 1);
		emit_end(out);
	}
	emit_end(out);
}

static void write_facts(struct emit *out, const struct member *m, const struct rows_fact *facts)
{
	struct row_fact row;

	emit_object(out, m->name);
	for (size_t i = 0; i < facts->count; i++)
		if (facts->fill(facts->ctx, i, &row))
			emit_bytes(out, row.name, row.value.s, row.value.len);
	emit_end(out);
}

static void write_classes(struct emit *out, const struct member *m, const uint64_t *bytes)
{
	emit_object(out, m->name);
	for (unsigned c = 0; c < CATEGORIES; c++)
		if (bytes[c])
			emit_number(out, categories[c].name, bytes[c]);
	emit_end(out);
}

static void write_words(struct emit *out, const struct member *m, const struct words *w)
{
	emit_array(out, m->name);
	for (size_t i = 0; i < w->count; i++) {
		const char *word = words_at(w, i);

		if (word)
			emit_text(out, NULL, word);
	}
	emit_end(out);
}

static void write_numbers(struct emit *out, const struct member *m, const struct numbers *all)
{
	emit_array(out, m->name);
	for (size_t i = 0; i < all->count; i++)
		emit_signed(out, NULL, all->get(all->ctx, i));
	emit_end(out);
}

/* Writes a member in JSON, or as a line of text. */
static void write_scalar(struct emit *out, const struct member *m, const void *at)
{
	const struct defs_text *raw = at;
	const char *text;

	switch (m->type) {
	case MEMBER_SIGNED:
	case MEMBER_CHANGE:
	case MEMBER_WALL:
		emit_signed(out, m->name, *(const int64_t *)at);
		break;
	case MEMBER_COUNT_OR_NULL:
	case MEMBER_BYTES_OR_NULL:
	case MEMBER_NS_OR_NULL:
		if (*(const uint64_t *)at == NO_NUMBER)
			emit_null(out, m->name);
		else
			emit_number(out, m->name, *(const uint64_t *)at);
		break;
	case MEMBER_DECIMAL:
		emit_decimal(out, m->name, *(const double *)at);
		break;
	case MEMBER_FLAG:
		emit_flag(out, m->name, *(const bool *)at);
		break;
	case MEMBER_TEXT:
	case MEMBER_FUNCTION:
		memcpy(&text, at, sizeof(text));
		emit_text(out, m->name, text ? text : "");
		break;
	case MEMBER_RAW:
		emit_bytes(out, m->name, raw->s ? raw->s : "", raw->len);
		break;
	case MEMBER_CLASS:
		emit_text(out, m->name, categories[*(const unsigned *)at].name);
		break;
	case MEMBER_LINE:
		emit_number(out, m->name, *(const unsigned *)at);
		break;
	default:
		emit_number(out, m->name, *(const uint64_t *)at);
	}
}

static void write_member(struct emit *out, const struct member *m, const void *at)
{
	if (m->type == MEMBER_LIST)
		write_rows(out, m, at);
	else if (m->type == MEMBER_MAP)
		write_map(out, m, at);
	else if (m->type == MEMBER_PART)
		document_write(out, m->name, m->part, at);
	else if (m->type == MEMBER_FACTS)
		write_facts(out, m, at);
	else if (m->type == MEMBER_CLASSES)
		write_classes(out, m, *(const uint64_t *const *)at);
	else if (m->type == MEMBER_WORDS)
		write_words(out, m, at);
	else if (m->type == MEMBER_NUMBERS)
		write_numbers(out, m, at);
	else
		write_scalar(out, m, at);
}

static void write_row(struct emit *out, const struct document *d, const char *row, size_t first)
{
	for (size_t i = first; i < d->count; i++) {
		const struct member *m = &d->members[i];

		if (m->name && (!m->has || *(const bool *)(row + m->has - 1)))
			write_member(out, m, row + m->offset);
	}
}

void document_write(struct emit *out, const char *key, const struct document *d, const void *row)
{
	if (!emit_json(out))
		return;
	emit_object(out, key);
	write_row(out, d, row, 0);
	emit_end(out);
}

/* ---- text ---- */

void document_lines(struct emit *out, const struct document *d, const void *row, const char *first,
		    const char *last)
{
	bool on = !first;

	if (emit_json(out))
		return;
	FOR_EACH (const struct member, m, d->members, d->count) {
		const char *base = row;

		if (!m->name)
			continue;
		if (first && !strcmp(m->name, first))
			on = true;
		if (on && (m->type < MEMBER_CLASSES || m->type > MEMBER_MAP) &&
		    (!m->has || *(const bool *)(base + m->has - 1)))
			write_scalar(out, m, base + m->offset);
		if (last && !strcmp(m->name, last))
			return;
	}
}
