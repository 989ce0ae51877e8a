/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that a CUPTI subscriber can get callbacks for: the functions that give and take memory, of
 * runtime and driver, when they begin and when they end. Costs one load where there is no
 * subscriber.
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
	uint64_t data;	      /* the subscriber's own */
};

/* Result of the innermost call in progress. */
extern __thread int call_result;

extern unsigned int tool_active;
void tool_begin(struct tool_call *call);
void tool_end(struct tool_call *call);
