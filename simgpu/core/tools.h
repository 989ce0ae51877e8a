/* SPDX-License-Identifier: Apache-2.0
 *
 * CUPTI callbacks at the begin and end of calls of runtime and driver that allocate and free
 * memory. Without a subscriber a call costs one load.
 */
#pragma once

#include <stdint.h>

enum { TOOL_DRIVER = 1, TOOL_RUNTIME = 2 }; /* CUPTI's domains */

struct tool_call {
	int domain;
	uint32_t id;
	const char *name;
	const void *params;
	uint32_t correlation; /* 0: no callback */
	uint64_t data;	      /* for the subscriber's use */
};

/* Result of the innermost call in progress. */
extern __thread int call_result;

extern unsigned int tool_active;
void tool_begin(struct tool_call *call);
void tool_end(struct tool_call *call);
