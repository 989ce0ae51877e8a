/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which refusals of memory a recording has, from its marks. A framework that reports them itself is
 * believed; without one, or for a library's own memory, it is the CUDA call that was refused.
 */
#pragma once

#include "../model/lives.h"

/* Which refusal. */
struct refusal {
	struct lives_mark event;
	struct lives_mark fail; /* the CUDA call that was refused for it; kind 0 = there was none */
	uint64_t before;	/* the event of the refusal before it; 0 = it is the first */
	uint64_t nth, count;	/* of all refusals in the recording */
	uint64_t later_allocs;	/* blocks on its device after it (of a call without a framework: of
				 * memory): the program went on */
};

/* nth: from 1, 0 = the last one. false: there is none. */
bool refusals_find(struct refusal *out, const struct lives *l, uint64_t nth);

/* They report them: then its marks alone count. */
bool refusals_reported(const struct lives *l);
bool refusals_is_one(const struct lives_mark *m, bool reported);
