/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes values that were read from a pickle into another one, each shared list or dictionary once.
 * What holds itself ends with None, so does what is nested deeper than anyone's data is.
 */
#ifndef VIEWER_PICKLE_COPY_H
#define VIEWER_PICKLE_COPY_H

#include "pickle.h"
#include "pickle_write.h"

struct pickle_copy {
	const struct pickle *from;
	struct pickler *to;
	uint32_t *uses; /* of each value, by lists and dictionaries */
	struct map kept;
	unsigned depth;
};

void pickle_copy_start(struct pickle_copy *c, const struct pickle *from, struct pickler *to);
void pickle_copy_end(struct pickle_copy *c);

void pickle_copy(struct pickle_copy *c, const struct pickle_value *v);

#endif
