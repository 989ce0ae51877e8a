/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder's own figures: its memory, and what its tables had no room for. */
#include "facts.h"

#include "../base/os.h"
#include "../rings/live.h"
#include "../stacks/intern_stack.h"
#include "intern_string.h"

static uint64_t names_cut; /* as last emitted */

void figures_emit_names(bool (*emit)(const struct gmt_def *d), bool at_end)
{
	uint64_t cut = strings_cut();

	if (cut && (at_end || !names_cut))
		facts_emit_number(emit, "recorder.names_cut", cut);
	names_cut = cut;
}

void figures_emit(bool (*emit)(const struct gmt_def *d))
{
	facts_emit_number(emit, "recorder.memory_bytes", os_mapped() + live_bytes());
	facts_emit_number(emit, "recorder.stack_nodes", stack_nodes());
	figures_emit_names(emit, true);
	if (stack_nodes_cut())
		facts_emit_number(emit, "recorder.stacks_cut", stack_nodes_cut());
}

void figures_forget(void)
{
	names_cut = 0;
}
