/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of every command: the same calls print text or a JSON document. Strings can hold any
 * bytes. JSON escapes them: a byte that is not valid UTF-8 becomes the lone surrogate U+DC00 +
 * byte, which Python's "surrogateescape" turns back. A terminal gets no control characters.
 *
 * In JSON each command prints one document (or several, one a line).
 */
#pragma once

#include "usual.h"

struct emit;

struct emit *emit_open(FILE *f, bool json);
struct emit *emit_like(const struct emit *e, FILE *f); /* the same kind of output to f */
int emit_close(struct emit *e);			       /* not 0: something could not be written */
bool emit_json(const struct emit *e);

/* JSON only: nothing in text. key is NULL inside arrays and for the document itself. */
void emit_object(struct emit *e, const char *key);
void emit_array(struct emit *e, const char *key);
void emit_end(struct emit *e);
void emit_members(struct emit *e, const char *s, size_t len); /* all members of the JSON object s */

/* Members of an object; in text a line "key  value". */
void emit_number(struct emit *e, const char *key, uint64_t n);
void emit_null(struct emit *e, const char *key); /* in text: nothing */
void emit_signed(struct emit *e, const char *key, int64_t n);
void emit_decimal(struct emit *e, const char *key, double n);
void emit_flag(struct emit *e, const char *key, bool b);
void emit_text(struct emit *e, const char *key, const char *s);
void emit_bytes(struct emit *e, const char *key, const char *s, size_t len);

/* Prints text as Markdown from now on: titles become headings, tables become Markdown tables, and
 * characters that Markdown or HTML would take for markup are escaped. */
void emit_use_markdown(struct emit *e);
bool emit_is_markdown(const struct emit *e);

bool emit_colour(const struct emit *e); /* whether text may contain colours */

/* Text only; they print nothing in JSON. A title is bold on a terminal. Control characters in the
 * text are escaped. */
void emit_line(struct emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
void emit_title(struct emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define PARAGRAPH 78 /* columns; fewer on a terminal that is narrower than 80 */

/* Columns of the terminal on stdout, 80 if unknown; 0 = stdout is not a terminal. */
size_t emit_screen(void);

/* Prints a text in lines of that width, the first behind `first`, the others behind `next`. A
 * longer word is not split. */
void emit_paragraph(struct emit *out, const char *first, const char *next, const char *text);

/* The same with a text in the manner of printf and an empty `first`. */
void emit_sentence(struct emit *out, const char *next, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* An item of a numbered list, and a line that is an item of a bullet list in Markdown. */
void emit_item(struct emit *e, size_t number, const char *text);
void emit_point(struct emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* In Markdown, the lines between these two calls are folded away. */
void emit_fold(struct emit *e, const char *title);
void emit_fold_end(struct emit *e);
void emit_escaped(struct emit *e, const char *text);

/* Prints text as it is, without a newline. Nothing is escaped, so the text must not contain names
 * from a recording. */
void emit_raw(struct emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
