/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a sum, in words: "parameters 1 GiB and gradients 1 GiB". */
#pragma once

#include "oom.h"

/* A sum by its parts. Parts of one name are added up. */
struct terms {
	struct term {
		const char *name;
		uint64_t bytes;
	} items[CATEGORIES + 1];
	unsigned count;
};

static inline void terms_add(struct terms *t, const char *name, uint64_t bytes)
{
	struct term *x = FIRST_OF(i, t->items, t->count, !strcmp(i->name, name));

	if (x)
		x->bytes += bytes;
	else
		t->items[t->count++] = (struct term){ name, bytes };
}

static inline void terms_add_classes(struct terms *t, const uint64_t bytes[CATEGORIES],
				     unsigned classes)
{
	for (unsigned c = 0; c < CATEGORIES; c++)
		if (category_in(c, classes))
			terms_add(t, categories[c].term, bytes[c]);
}

/* Appends ": a 1 KiB, b 2 KiB and c 3 KiB", without parts of 0 bytes. Returns the number of parts.
 * */
static inline unsigned terms_say(const struct terms *t, char *text)
{
	unsigned left = (unsigned)SUM_OF(i, t->items, t->count, i->bytes > 0), shown = 0;

	for (unsigned i = 0; i < t->count && shown < left; i++)
		if (t->items[i].bytes) {
			const char *join = !shown ? ":" : shown + 1 == left ? " and" : ",";

			text_add(text, OOM_TEXT, "%s %s %s", join, t->items[i].name,
				 B(t->items[i].bytes));
			shown++;
		}
	return left;
}
