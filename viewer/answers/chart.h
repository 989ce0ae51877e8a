/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An envelope as a picture of characters: a column a bucket, its height the most that the bucket
 * held, the classes upon each other. With colours in eighths of a character; without, a letter for
 * each class.
 */
#pragma once

#include "../base/emit.h"
#include "../moments/envelope.h"
#include "../moments/timeline.h"

#define CHART_MARGIN 12 /* columns before the picture: the axis */

struct chart {
	const struct envelope *envelope;
	const struct timeline *timeline; /* its phases and steps are printed below */
	unsigned height;
	bool blocks; /* Unicode, else ASCII */
};

void chart_print(const struct chart *c, struct emit *out);

/* Columns and rows of the terminal on stdout, 80 by 24 if it is none. */
void chart_screen(unsigned *columns, unsigned *rows);
/* The environment says that the terminal understands UTF-8. */
bool chart_utf8(void);
/* Starts the class's colour for what emit_raw prints next; nothing without colours. */
void chart_colour(struct emit *out, unsigned category, bool background);
void chart_colour_end(struct emit *out);
