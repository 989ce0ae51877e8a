/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of a long run that repeat the steps before them: the same requests with the same
 * results at the same addresses, in the same order, between equal sets of live allocations. An
 * answer about all steps needs none of them, because an event in such a step says nothing that its
 * twin has not said. Short runs have none, so that each of their steps is looked at.
 */
#pragma once

#include "../model/lives.h"
#include "../model/steps.h"

/* Steps around a row of repeated ones within which all that crosses its ends begins and ends. */
#define REPEATS_MARGIN 4

struct repeat {
	uint64_t from, until; /* events: until is the first that is not repeated */
	uint64_t known;	      /* the first event of the last REPEATS_MARGIN steps in it */
	uint32_t life, lives; /* the first that is born in it; those of one step */
	uint32_t known_life;  /* the first that is born at `known` or later */
};

struct repeats {
	struct repeat *items;
	size_t count, room;
	size_t steps; /* in all rows */
};

void repeats_find(struct repeats *r, const struct lives *lives, const struct steps *steps);
void repeats_free(struct repeats *r);
/* The row of repeated steps that the event is in, or NULL. */
const struct repeat *repeats_at(const struct repeats *r, uint64_t seq);
