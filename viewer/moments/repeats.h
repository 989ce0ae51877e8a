/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of a long run that repeat the steps before them: the same requests with the same
 * results at the same addresses, in the same order, between equal sets of live allocations. Answers
 * about all steps can leave them out, because their events add nothing new. Short runs have none,
 * so that all of their steps are read.
 */
#pragma once

#include "../model/lives.h"
#include "../model/steps.h"

/* Within this many steps of a row's end, whatever crosses that end begins and ends. */
#define REPEATS_MARGIN 4

struct repeat {
	uint64_t from, until; /* its events; `until` is the first behind it */
	uint64_t known;	      /* the first event of the last REPEATS_MARGIN steps in it */
	uint32_t life, lives; /* the first that is born in it; number of births in one step */
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
