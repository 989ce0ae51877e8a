/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which line holds a block: the innermost frame of the user's or the model's own code, that is
 * Python outside of torch and of the standard library. Where there is none (the backward threads
 * run no Python): the backward node, the innermost Python frame at all, the library that asked.
 */
#ifndef VIEWER_OWNERS_H
#define VIEWER_OWNERS_H

#include "../base/tree.h"
#include "stacks.h"

struct owner {
	const char *function;
	const char *file;
	unsigned line;
	bool backward; /* function is a backward node, there is no file */
	bool compiled; /* code that the framework's compiler made for that line took it */
};

struct owners {
	struct stacks *stacks;
	struct map known; /* stack id -> index in found */
	struct owner *found;
	size_t count, room;
	char **texts;
	size_t text_count, text_room;
};

void owners_init(struct owners *o, struct stacks *stacks);
void owners_free(struct owners *o);
/* The same with stacks and symbols of their own: those of a whole recording. */
void owners_open(struct owners *o, struct stacks *stacks, struct defs *d);
void owners_close(struct owners *o);

struct owner owners_find(struct owners *o, const struct block *b);
/* The line that called the outermost forward method on the stack; no file = there is none. */
struct owner owners_caller(struct owners *o, uint32_t stack);
/* "Net.forward" */
bool owners_is_forward(const char *function);
bool owners_same(const struct owner *a, const struct owner *b);

/* Who asked CUDA for memory: the name of the library whose code called ("NCCL"), or of the program.
 */
const char *owners_library(struct owners *o, const struct block *b);

/* A file of Python's standard library. */
bool owners_is_stdlib(const char *file);
/* A file that only carries out what a model or a script wants. */
bool owners_is_plumbing(const char *file);

/* File names as a report shows them: the last part. */
const char *owners_base(const char *path);

#endif
