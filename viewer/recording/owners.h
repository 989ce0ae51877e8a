/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call site of a block: the innermost frame of the user's or the model's own code, which is
 * Python outside of torch and the standard library. If there is none (backward threads run no
 * Python), it is the backward node, the innermost Python frame, or the library that allocated.
 */
#pragma once

#include "../base/tree.h"
#include "stacks.h"

struct owner {
	const char *function;
	const char *file;
	unsigned line;
	bool backward; /* function is a backward node, there is no file */
	bool compiled; /* allocated by code that the framework's compiler generated for this line */
};

struct owners {
	struct stacks *stacks;
	MAP_OF(struct owner) found; /* by stack and node */
	char **texts;
	size_t text_count, text_room;
};

/* Also initializes `stacks`, with the symbols that d keeps or new ones. */
void owners_open(struct owners *o, struct stacks *stacks, struct defs *d);
void owners_close(struct owners *o);

struct owner owners_find(struct owners *o, const struct block *b);
/* The line that called the outermost forward method on the stack; no file if there is none. */
struct owner owners_caller(struct owners *o, uint32_t stack);
/* Whether it is a method such as "Net.forward". */
bool owners_is_forward(const char *function);

/* Fills `forward` with the modules of the latest stack, outermost first; returns their number. A
 * module is a forward method that nn.Module calls. It does not call the forward of a Function. */
#define OWNER_MODULES 128
size_t owners_modules(const struct stacks *s, const struct frame *forward[OWNER_MODULES]);
/* The class of a module: "MLP" for "MLP.forward" and for "build.<locals>.MLP.forward". */
struct defs_text owners_module_class(const struct frame *forward);
/* "Net/Block"; if `own`, without modules for which owners_is_plumbing is true. Returns buf. */
const char *owners_module_path(const struct stacks *s, bool own, char *buf, size_t room);
/* The same for a stack, which is read for that. "" outside of modules. */
const char *owners_modules_of(struct owners *o, uint32_t stack, char *buf, size_t room);
bool owners_same(const struct owner *a, const struct owner *b);
static inline bool owners_same_function(const struct owner *a, const struct owner *b)
{
	return a->file && a->file[0] && !strcmp(a->function, b->function) &&
	       !strcmp(a->file, b->file);
}
/* Whether that line made the block. */
static inline bool owners_made(struct owners *o, const struct block *b, const struct owner *line)
{
	const struct owner made_by = owners_find(o, b);

	return owners_same(&made_by, line);
}

/* The origin of an allocation from CUDA: the name of the library that called it ("NCCL"), or of the
 * program. */
const char *owners_library(struct owners *o, const struct block *b);

/* Whether the file belongs to Python's standard library. */
bool owners_is_stdlib(const char *file);
/* Whether the file only carries out calls of a model or a script. */
bool owners_is_plumbing(const char *file);

/* A file's name in reports: the last part of its path. */
const char *owners_base(const char *path);
