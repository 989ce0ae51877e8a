/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one way out for what a command found: the same calls give an aligned table or a JSON
 * document. Strings are any bytes: JSON gets them escaped (a byte that is no UTF-8 becomes the lone
 * surrogate U+DC00 + byte, which Python's "surrogateescape" turns back), a terminal gets no control
 * characters.
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
void emit_members(struct emit *e, const char *s, size_t len); /* members of a whole JSON object */

/* Members of an object; in text a line "key  value". */
void emit_number(struct emit *e, const char *key, uint64_t n);
void emit_null(struct emit *e, const char *key); /* in text: nothing */
void emit_signed(struct emit *e, const char *key, int64_t n);
void emit_decimal(struct emit *e, const char *key, double n);
void emit_flag(struct emit *e, const char *key, bool b);
void emit_text(struct emit *e, const char *key, const char *s);
void emit_bytes(struct emit *e, const char *key, const char *s, size_t len);

/* Text is Markdown from now on: titles are headings, tables tables; what it or HTML would take for
 * markup is escaped in all text. */
void emit_use_markdown(struct emit *e);
bool emit_is_markdown(const struct emit *e);

bool emit_colour(const struct emit *e); /* it is a terminal that may get colours */

/* Text only: nothing in JSON. A title stands out where the terminal can do that. Control characters
 * in what they print are shown, not sent. */
void emit_line(struct emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
void emit_title(struct emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define PARAGRAPH 78 /* columns; fewer on a terminal that is narrower than 80 */

/* Columns of the terminal that stdout is, 80 if it does not know them; 0 = stdout is no terminal.
 */
size_t emit_screen(void);

/* A sentence in lines of that width (a longer word is not parted), the first after `first`, each
 * other after `next`. */
void emit_paragraph(struct emit *out, const char *first, const char *next, const char *text);

/* The same, made as by printf; the first line stands at the left. */
void emit_sentence(struct emit *out, const char *next, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* A sentence with its number; one of several facts below each other. */
void emit_item(struct emit *e, size_t number, const char *text);
void emit_point(struct emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* In Markdown what is between the two is folded away. */
void emit_fold(struct emit *e, const char *title);
void emit_fold_end(struct emit *e);
void emit_escaped(struct emit *e, const char *text);

/* The same without an end of line and as it is: for what is known to hold no foreign text. */
void emit_raw(struct emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
