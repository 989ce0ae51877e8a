/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of an Arrow stream from a descriptor: integers and texts without nesting, uncompressed,
 * as the tool writes them. What else there may be is refused.
 */
#ifndef MESSAGES_H
#define MESSAGES_H

#include "table.h"

enum message { MESSAGE_SCHEMA = 1, MESSAGE_BATCH = 3, MESSAGE_END = 100 };

struct messages {
	int fd;
	uint8_t *head;
	size_t room;
};

/* NULL, or what is wrong with it. A batch's lists are as long as there are columns. */
const char *messages_schema(struct messages *m, struct columns *out);
const char *messages_batch(struct messages *m, const struct columns *c, struct batch *out,
			   bool *end);

#endif
