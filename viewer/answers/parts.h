/* SPDX-License-Identifier: Apache-2.0 */
/* What the answers of several commands are put together from. */
#ifndef VIEWER_PARTS_H
#define VIEWER_PARTS_H

#include "../base/emit.h"
#include "../stacks/owners.h"

/* JSON: the classes that hold anything, by name; bytes has CATEGORIES of them. */
void emit_by_class(struct emit *out, const char *key, const uint64_t *bytes);
/* JSON: function, file and line. */
void emit_owner(struct emit *out, const struct owner *o);

/* Text: "function file.py:12", cut in the middle of the function's name if it must be. Returns buf.
 */
const char *owner_words(const struct owner *o, char *buf, size_t room);
/* The same if it fits into that many columns, else its file and line only, if it has them. */
const char *owner_words_within(const struct owner *o, char *buf, size_t room, size_t columns);

#define PARAGRAPH 78 /* columns */

/* Text: a sentence in lines of that width, the first after `first`, each other after `next`. */
void emit_paragraph(struct emit *out, const char *first, const char *next, const char *text);

/* Text: "... and 3 smaller ones", nothing of none. */
void emit_left_out(struct emit *out, const char *indent, size_t count);

/* The name of a device, and that it was a simulated one: "simulated h100-80g". "" if it is not
 * known. Returns buf. */
const char *device_words(const struct defs *d, int device, char *buf, size_t room);

#endif
