/* SPDX-License-Identifier: Apache-2.0 */
/* The peak of a device: its moment, its classes, and the lines of code that hold it. */
#pragma once

#include "../moments/snapshot.h"
#include "document.h"
#include "holders.h"

struct peak_answer {
	struct timeline *timeline;
	struct snapshot shot;
	struct instant instant;
	struct holders lines;
	char card[100]; /* of the row that is being written */
};

void peak_find(struct peak_answer *a, struct timeline *t);
struct row_peak peak_document(struct peak_answer *a); /* valid until peak_free(a) */
void peak_free(struct peak_answer *a);
