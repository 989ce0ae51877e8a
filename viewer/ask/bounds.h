/* SPDX-License-Identifier: Apache-2.0 */
/* Limits that a recording is checked against, and a sentence for each result. */
#pragma once

#include "../classes/classify.h"
#include "../recording/owners.h"
#include "options.h"

struct bounds_wanted {
	struct option_amount peak, reserved, growth, baseline_above, classes[CATEGORIES];
	const char *baseline; /* a recording, or NULL */
	long device;
};

struct bound {
	const char *name; /* of its option */
	int category;	  /* of max-class, else -1 */
	bool ok, known;	  /* known: it could be measured; if not, ok is false */
	uint64_t limit, measured;
	char *text;	    /* a sentence without its full stop */
	struct owner owner; /* the line that holds most of it; its strings are the bound's own */
};

/* Results for one recording. */
struct bounds {
	const char *file;
	struct bound *items;
	size_t count, room, broken;
};

/* 0, or a sentence was said and the exit code; free it either way. */
int bounds_find(struct bounds *b, const char *file, const struct bounds_wanted *w);
void bounds_free(struct bounds *b);
