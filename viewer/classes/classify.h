/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The class of a block at a moment: that of the first rule of a table that fits. A verdict keeps
 * the rule, so that the reason can be given.
 */
#pragma once

#include "../model/model.h"
#include "../recording/owners.h"
#include "categories.h"

struct rule;

struct verdict {
	enum category category;
	const struct rule *rule;
};

struct classifier;

/* m has replayed the whole recording, with study_begin before. m and owners (NULL: no frames are
 * read) must outlive the classifier. */
struct classifier *classifier_new(const struct model *m, struct owners *owners);
void classifier_free(struct classifier *c);

/* b: a block of a moment. */
struct verdict classify(struct classifier *c, const struct block *b);
/* The class that a request that ran out of memory would have got, on a thread in that stage. */
struct verdict classify_request(struct classifier *c, const struct block *b, enum block_stage stage,
				uint64_t step);

/* Some gradients were freed where gradients are cleared. */
bool classify_clears_gradients(const struct model *m);

/* The names of all rules that fit, the deciding one first: "saved:activations nothing:unknown". For
 * tests. */
void classify_all(struct classifier *c, const struct block *b, char *buf, size_t room);
#define CLASSIFY_RULES 2048 /* bytes of such a text */

const char *verdict_rule(struct verdict v); /* the rule's name */
/* certainty.c: "certain", "likely" or "guess", by the share of bytes that the rule gets right. */
const char *verdict_certainty(const struct classifier *c, struct verdict v);
/* That share in percent, -1: too few bytes to judge by. */
int verdict_percent(const struct classifier *c, struct verdict v);
bool verdict_is_held(struct verdict v); /* the program's objects say so, no rule decided */
bool verdict_is_leaf(struct verdict v); /* of parameters: it is a leaf that requires grad */

/* The reason of a verdict, and where and when the block was born. */
struct reason {
	const char *because;
	char when[64];	  /* " (first at 1.20 s)", or "" */
	bool has_birth;	  /* else it was there when recording began, and no time is known */
	uint64_t born_ns; /* since the first event */
	char place[640];  /* " in a forward pass, at train.py:3"; "" without a stack */
};
struct reason verdict_reason(struct classifier *c, struct verdict v, const struct block *b);
#define REASON_WORDS 1024
/* One or two sentences. Returns buf. */
const char *reason_words(const struct reason *r, char *buf, size_t room);
