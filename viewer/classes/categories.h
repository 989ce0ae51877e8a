/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The classes, and sets of them. An answer about several classes uses a trait (CLASSES_THAT(STAY)).
 * Each row of categories.def has its traits, so that a new class is in every answer that it belongs
 * to. A set that is spelled out instead says in a comment why no trait fits.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum category {
#define CATEGORY(name, words, colour, letter, term, level, part, traits) CATEGORY_##name,
#include "categories.def"
	CATEGORIES
};

enum category_trait {
	STAYS = 1 << 0,		   /* kept from one step, or pass of a served model, to the next */
	GROWS_WITH_BATCH = 1 << 1, /* more rows or tokens need more of it */
	IS_WEIGHT = 1 << 2,	   /* the model itself, trained or not */
	FOLLOWS_TRAINING = 1 << 3, /* one, or some, for each weight that is trained */
	IS_OF_FORWARD = 1 << 4,	   /* given to, or made by, a forward pass */
	IS_COMPUTED = 1 << 5,	   /* the result of an operator of a pass */
	IS_SAVED = 1 << 6,	   /* autograd might have saved it for backward */
	IS_TEMPORARY = 1 << 7,	   /* nothing has a lasting use for it */
};

#define CLASS_BIT(name) (1u << CATEGORY_##name)

/* Sets of classes as bits: the sum of the rows with that trait. */
enum class_set {
#define CATEGORY(name, words, colour, letter, term, level, part, traits) \
	((traits)&STAYS ? CLASS_BIT(name) : 0) |
	CLASSES_THAT_STAY =
#include "categories.def"
		0,
#define CATEGORY(name, words, colour, letter, term, level, part, traits) \
	((traits)&GROWS_WITH_BATCH ? CLASS_BIT(name) : 0) |
	CLASSES_THAT_GROW_WITH_BATCH =
#include "categories.def"
		0,
#define CATEGORY(name, words, colour, letter, term, level, part, traits) \
	((traits)&IS_WEIGHT ? CLASS_BIT(name) : 0) |
	CLASSES_THAT_ARE_WEIGHTS =
#include "categories.def"
		0,
#define CATEGORY(name, words, colour, letter, term, level, part, traits) \
	((traits)&FOLLOWS_TRAINING ? CLASS_BIT(name) : 0) |
	CLASSES_THAT_FOLLOW_TRAINING =
#include "categories.def"
		0,
#define CATEGORY(name, words, colour, letter, term, level, part, traits) \
	((traits)&IS_OF_FORWARD ? CLASS_BIT(name) : 0) |
	CLASSES_THAT_ARE_OF_FORWARD =
#include "categories.def"
		0,
#define CATEGORY(name, words, colour, letter, term, level, part, traits) \
	((traits)&IS_COMPUTED ? CLASS_BIT(name) : 0) |
	CLASSES_THAT_ARE_COMPUTED =
#include "categories.def"
		0,
#define CATEGORY(name, words, colour, letter, term, level, part, traits) \
	((traits)&IS_SAVED ? CLASS_BIT(name) : 0) |
	CLASSES_THAT_ARE_SAVED =
#include "categories.def"
		0,
#define CATEGORY(name, words, colour, letter, term, level, part, traits) \
	((traits)&IS_TEMPORARY ? CLASS_BIT(name) : 0) |
	CLASSES_THAT_ARE_TEMPORARY =
#include "categories.def"
		0,
};

#define CLASSES_THAT(have) ((unsigned)CLASSES_THAT_##have)

/* Classes with both traits: results of forward passes. */
#define FORWARD_RESULTS (CLASSES_THAT(ARE_COMPUTED) & CLASSES_THAT(ARE_OF_FORWARD))
/* Inputs and results of a pass, without caches that stay after it. */
#define OF_ONE_PASS (CLASSES_THAT(GROW_WITH_BATCH) & ~CLASSES_THAT(STAY))
/* Classes that the model needs before any batch. */
#define OF_THE_MODEL (CLASSES_THAT(STAY) & ~CLASSES_THAT(GROW_WITH_BATCH))

/* Classes that training makes and frees again, besides results of forward passes. */
#define TEMPORARIES_OF_TRAINING (CLASSES_THAT(ARE_TEMPORARY) & ~CLASSES_THAT(ARE_OF_FORWARD))
/* Classes without a trait: neither of the model nor of the batch. */
#define OTHER_CLASSES \
	(~(CLASSES_THAT(STAY) | CLASSES_THAT(GROW_WITH_BATCH) | CLASSES_THAT(ARE_TEMPORARY)))

static inline bool category_in(unsigned category, unsigned classes)
{
	return classes >> category & 1;
}

/* The sum of the bytes of a set of classes. */
static inline uint64_t classes_sum(const uint64_t bytes[CATEGORIES], unsigned classes)
{
	uint64_t sum = 0;

	for (unsigned c = 0; c < CATEGORIES; c++)
		sum += category_in(c, classes) ? bytes[c] : 0;
	return sum;
}

extern const struct category_words {
	const char *name, *words, *term; /* "optimizer_state", "optimizer state" */
	uint32_t colour;		 /* 0xrrggbb */
	unsigned level;
} categories[CATEGORIES];
/* Its words for blocks that are alive in a later step: kept by a variable, no temporaries. */
const char *category_kept_words(unsigned category);
int category_by_name(const char *name); /* -1: there is none */
