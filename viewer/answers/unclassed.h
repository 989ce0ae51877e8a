/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of a memory snapshot of which only the size is known: how many bytes, why, and what to
 * switch on to know more. */
#pragma once

#include "../moments/snapshot.h"

#define UNCLASSED_WORDS 300
#define UNCLASSED_NEXT                                                                            \
	"call torch.cuda.memory._record_memory_history() before the model is made, or run it as " \
	"gpumemtrace run -- python train.py"

#define UNCLASSED_SIZES 2

struct unclassed {
	uint64_t bytes, before; /* before: in blocks that are older than the recording */
	struct unclassed_size {
		uint64_t size;
		size_t blocks;
	} most[UNCLASSED_SIZES]; /* the sizes with most bytes, 0 = none */
};

/* All 0 if the recording is no snapshot. */
void unclassed_find(struct unclassed *u, const struct timeline *t, const struct snapshot *s);
/* Words about these blocks. False and no text if they are less than a quarter of `all` bytes. */
bool unclassed_words(const struct unclassed *u, uint64_t all, char words[UNCLASSED_WORDS]);
/* Adds the same words to a text, and how to know more. */
void unclassed_add(const struct unclassed *u, uint64_t all, char *text, size_t room);
