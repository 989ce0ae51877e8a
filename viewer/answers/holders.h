/* SPDX-License-Identifier: Apache-2.0 */
/* The blocks of a moment, summed up by class and line that holds them, or the library that asked.
 */
#ifndef VIEWER_HOLDERS_H
#define VIEWER_HOLDERS_H

#include "../moments/snapshot.h"
#include "../stacks/owners.h"

struct holder {
	enum category category; /* where the classes are told apart */
	struct owner owner;
	const char *library; /* of memory that is not the framework's */
	uint64_t bytes, blocks;
	uint64_t before; /* bytes of these that were made in earlier steps, if that was asked */
};

struct holders {
	struct holder *items; /* the largest first */
	size_t count, room;
};

/* One more block of h; then, when all are there, the largest first. */
struct holder *holders_add(struct holders *all, struct holder h, uint64_t bytes);
void holders_sort(struct holders *all);

/* By class and line. */
struct holders holders_by_class(const struct snapshot *s, struct owners *owners);
struct holders holders_of_blocks(const struct moment *mo, struct owners *owners);
/* Device memory that the framework did not ask for, by library. */
struct holders holders_of_libraries(const struct moment *mo, struct owners *owners);

#endif
