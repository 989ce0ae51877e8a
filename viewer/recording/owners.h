/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line that holds a block: the innermost frame of the user's or the model's own code, which is
 * Python outside of torch and the standard library. If there is none (backward threads run no
 * Python): the backward node, the innermost Python frame, or the library that allocated.
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

/* With its own stacks and symbols. */
void owners_open(struct owners *o, struct stacks *stacks, struct defs *d);
void owners_close(struct owners *o);

struct owner owners_find(struct owners *o, const struct block *b);
/* The line that called the outermost forward method on the stack; no file if there is none. */
struct owner owners_caller(struct owners *o, uint32_t stack);
/* "Net.forward" */
bool owners_is_forward(const char *function);

/* The modules around the frames of the latest stack, outermost first: forward methods that
 * nn.Module calls. A Function's forward, which it does not call, is none. Their number. */
#define OWNER_MODULES 128
size_t owners_modules(const struct stacks *s, const struct frame *forward[OWNER_MODULES]);
/* "MLP" of "MLP.forward" and of "build.<locals>.MLP.forward". */
struct defs_text owners_module_class(const struct frame *forward);
/* "Net/Block", without those of packages that only carry out calls if `own`. Returns buf. */
const char *owners_module_path(const struct stacks *s, bool own, char *buf, size_t room);
/* The modules of a stack, which becomes the latest one. "" outside of modules. */
const char *owners_modules_of(struct owners *o, uint32_t stack, char *buf, size_t room);
bool owners_same(const struct owner *a, const struct owner *b);

/* The origin of an allocation from CUDA: the name of the library that called it ("NCCL"), or of the
 * program. */
const char *owners_library(struct owners *o, const struct block *b);

/* Whether the file belongs to Python's standard library. */
bool owners_is_stdlib(const char *file);
/* Whether the file only carries out calls of a model or a script. */
bool owners_is_plumbing(const char *file);

/* A file's name in reports: the last part of its path. */
const char *owners_base(const char *path);
