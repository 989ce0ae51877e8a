/* SPDX-License-Identifier: Apache-2.0 */
/* Limits that a recording is checked against, and a sentence for each result. */
#pragma once

#include "../answers/document.h"
#include "../classes/classify.h"
#include "options.h"

struct bounds_wanted {
	struct option_amount peak, reserved, growth, baseline_above, classes[CATEGORIES];
	const char *baseline; /* a recording, or NULL */
	long device;
};

/* Results for one recording. A row owns its text and the names in its owner. A text is a sentence
 * without its full stop. */
struct bounds {
	const char *file;
	struct row_check_bound *items;
	size_t count, room, broken;
};

/* Returns 0, or an exit code after an error message. Call bounds_free in either case. */
int bounds_find(struct bounds *b, const char *file, const struct bounds_wanted *w);
void bounds_free(struct bounds *b);
