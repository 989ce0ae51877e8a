/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the classifier only: the facts that a rule can use, and the rules. */
#pragma once

#include "classify.h"
#include "study.h"

struct classifier {
	const struct model *m;
	const struct study *study; /* of m */
	struct owners *owners;
	const char *without; /* names of rules that are left out: for tests of the rules */
	struct map places;   /* stack -> enum place */
};

#include "life.h" /* questions about a life */

/* The functions of the rules, in rule_*.c by their kind of evidence. */
typedef bool rule_fits(struct classifier *c, const struct history *h);
#define RULE(name, category, when, fits, because) rule_fits fits;
#include "rules.def"

/* Facts from the source lines and native functions of a block's stack (places.c). */
enum place {
	PLACE_KNOWN = 1 << 0,
	PLACE_BUFFER = 1 << 1,	    /* a module registers a buffer there */
	PLACE_WORKSPACE = 1 << 2,   /* a library's scratch memory */
	PLACE_MAKER = 1 << 3,	    /* a tensor is made or copied to the device, not computed */
	PLACE_COMPUTED = 1 << 4,    /* a call from Python that computes */
	PLACE_NETWORK = 1 << 5,	    /* a collective's own memory */
	PLACE_GRAD = 1 << 6,	    /* the script's statement assigns to a .grad */
	PLACE_LEAF = 1 << 7,	    /* the script's statement makes a tensor that requires grad */
	PLACE_PARAMETER = 1 << 8,   /* the script's statement makes a Parameter */
	PLACE_ATTRIBUTE = 1 << 9,   /* the script's statement assigns to an object's attribute */
	PLACE_CACHE = 1 << 10,	    /* the name of the target or function is that of a cache */
	PLACE_CAT = 1 << 11,	    /* tensors are appended to one another */
	PLACE_RESULT = 1 << 12,	    /* an operation whose gradient needs its result */
	PLACE_TAKES = 1 << 14,	    /* an operation whose gradient needs its inputs */
	PLACE_MOVED = 1 << 13,	    /* a tensor is brought to the device */
	PLACE_CONVERTED = 1 << 17,  /* a tensor on the device is converted */
	PLACE_NARROWED = 1 << 19,   /* a tensor is converted to fewer bytes */
	PLACE_ROWS = 1 << 18,	    /* rows of a tensor are taken */
	PLACE_STORAGE = 1 << 21,    /* a storage is made from Python, as copy.deepcopy does */
	PLACE_READ = 1 << 15,	    /* the statement's source is recorded */
	PLACE_NAMED_GRAD = 1 << 22, /* the statement assigns to a name of gradients */
	PLACE_TABLE = 1 << 23,	    /* the statement assigns to a name of angles or masks */
	PLACE_CAST = 1 << 20,	    /* autocast converts an input */
	PLACE_OF_GRAD = 1 << 16,    /* the statement names gradients */
	PLACE_BUCKET = 1 << 24,	    /* the statement assigns to a name of buckets */
	PLACE_ROOM = 1 << 26,	    /* made empty or of zeros, to be written before it is read */
	PLACE_STATE = 1 << 27,	    /* the statement has a name of an optimizer's state */
	PLACE_ADAPTER = 1 << 25,    /* the function's name contains "lora" */
	PLACE_SUM = 1 << 28,	    /* the statement adds to a tensor in place */
};
/* statements.c */
uint32_t statement_places(const char *text); /* enum place, as bits */
/* places.c */
uint32_t place_of_python(struct classifier *c, uint32_t stack);
uint32_t place_of_script(struct classifier *c, const struct history *h);
uint32_t place_of_line(struct classifier *c, uint32_t stack); /* the same for a stack with Python */
uint32_t place_of_native(struct classifier *c, const struct history *h);
uint32_t place_of_stack(struct classifier *c, uint32_t stack, uint64_t seq); /* of a stack */

bool block_holds_results(struct classifier *c, const struct history *h);
bool life_converts_result(struct classifier *c, const struct history *h);
bool block_is_for_passes(struct classifier *c, const struct history *h);
bool block_is_gathered(struct classifier *c, const struct history *h);
bool block_is_bucket(struct classifier *c, const struct history *h);
bool block_is_of_graph_alone(struct classifier *c, const struct history *h);
