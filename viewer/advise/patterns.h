/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns of use, by the line that allocated the blocks: what DrGPUM calls inefficient. They are
 * facts of the recording, not changes: a weight that waits for the next step is idle, too.
 */
#pragma once

#include "../answers/document.h"

struct timeline;

struct patterns {
	bool known;			  /* the recording has all uses */
	struct row_advise_pattern *items; /* most bytes at the peak first */
	size_t count, room;
};

/* The caller frees the items. */
void patterns_find(struct patterns *p, struct timeline *t);
