/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An envelope as a picture of characters: a column for each bucket, as high as the bucket's peak,
 * with the classes stacked. With colours in eighths of a character, without them in letters.
 */
#pragma once

#include "../base/emit.h"
#include "../moments/envelope.h"
#include "../moments/timeline.h"

#define CHART_MARGIN 12 /* columns before the picture: the axis */

struct chart {
	const struct envelope *envelope;
	const struct timeline *timeline; /* for the phases and steps below the picture */
	unsigned height;
	bool blocks; /* Unicode characters, else ASCII */
};

void chart_print(const struct chart *c, struct emit *out);

/* Columns and rows of the terminal on stdout, 80 by 24 if there is none. */
void chart_screen(unsigned *columns, unsigned *rows);
/* True if the environment says that the terminal understands UTF-8. */
bool chart_utf8(void);
/* Sets the class's colour for the text that emit_raw prints next; nothing without colours. */
void chart_colour(struct emit *out, unsigned category, bool background);
void chart_colour_end(struct emit *out);
