/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the failed requests for memory in a recording's marks. If a framework reported any, only
 * its reports count. Otherwise failed CUDA calls count, except those that a framework tries again.
 */
#pragma once

#include "../model/lives.h"

/* One failed request. */
struct refusal {
	struct lives_mark event;
	struct lives_mark fail; /* the CUDA call that failed for it; kind 0 = none */
	uint64_t before;	/* event of the failed request before it, 0 = none */
	uint64_t nth, count;	/* its number from 1, and the number of all */
	uint64_t later_allocs;	/* later blocks on its device (after a failed call without a
				   framework, also memory): the program went on */
};

/* nth: from 1, 0 = the last one. False: there is none. */
bool refusals_find(struct refusal *out, const struct lives *l, uint64_t nth);

/* Whether a framework reported any; then only its marks count. */
bool refusals_reported(const struct lives *l);
bool refusals_is_one(const struct lives_mark *m, bool reported);
