/* SPDX-License-Identifier: Apache-2.0 */
/* The blocks of a moment, summed up by class and line, or by the library that allocated. */
#pragma once

#include "../moments/snapshot.h"
#include "../recording/owners.h"
#include "document.h"

struct holder {
	enum category category; /* if classes are distinguished */
	struct owner owner;
	const char *inside; /* the library, for memory outside the framework; else NULL */
	uint64_t bytes, blocks;
	uint32_t last_use; /* the last work (model/life_uses.h) that used any, if requested */
	uint64_t idle;	   /* bytes that were not used for a step, if requested */
	uint32_t idle_use; /* last work that used one of the idle blocks */
	uint64_t before;   /* bytes that were allocated in earlier steps, if requested */
	uint64_t grown;	   /* of these, bytes that count as growth */
};

/* Its class in words: "kept results" if most temporaries are of earlier steps. */
const char *holder_words(const struct holder *h);
/* A holder as a row of a document. */
struct row_class_line holder_line(const struct holder *h);

struct holders {
	struct holder *items; /* the largest first */
	size_t count, room;
};

struct rows_class_line holders_rows(const struct holders *all);

/* Adds a block to the holder of its line and class. After the last one, holders_sort orders by
 * size, the largest first. The caller frees items. */
struct holder *holders_add(struct holders *all, unsigned category, struct owner owner,
			   uint64_t bytes);
void holders_sort(struct holders *all);

/* By line, and with by_class also by class, which only moments of snapshots have. */
struct holders holders_of_blocks(const struct moment *mo, struct owners *owners, bool by_class);
/* Device memory allocated by libraries other than the framework. */
struct holders holders_of_libraries(const struct moment *mo, struct owners *owners);
