/* SPDX-License-Identifier: Apache-2.0 */
/* What the answers of several commands are put together from. */
#ifndef VIEWER_PARTS_H
#define VIEWER_PARTS_H

#include "../base/emit.h"
#include "../stacks/owner_words.h"

/* JSON: the classes that hold anything, by name; bytes has CATEGORIES of them. */
void emit_by_class(struct emit *out, const char *key, const uint64_t *bytes);
/* JSON: function, file and line. */
void emit_owner(struct emit *out, const struct owner *o);

#define PARAGRAPH 78 /* columns */

/* Text: a sentence in lines of that width (a longer word is not parted), the first after `first`,
 * each other after `next`. */
void emit_paragraph(struct emit *out, const char *first, const char *next, const char *text);

/* Text: "... and 3 smaller ones", nothing of none. */
void emit_left_out(struct emit *out, const char *indent, size_t count);

bool device_is_simulated(const struct defs *d, int device);

/* The name of a device, and that it was a simulated one: "simulated h100-80g". "" if it is not
 * known. Returns buf. */
const char *device_words(const struct defs *d, int device, char *buf, size_t room);

#endif
