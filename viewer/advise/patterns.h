/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns of use by call site, as DrGPUM defines inefficient ones. They are facts and not
 * advice: a weight that waits for the next step is idle, too.
 */
#pragma once

#include "../answers/document.h"

struct timeline;

struct patterns {
	bool known;			  /* all uses were recorded */
	struct row_advise_pattern *items; /* most bytes at the peak first */
	size_t count, room;
};

/* The caller frees the items. */
void patterns_find(struct patterns *p, struct timeline *t);
