/* SPDX-License-Identifier: Apache-2.0 */
#include "run_state.h"

#include "running.h"

enum recording_state recording_state(const struct recording *r, bool ended)
{
	const struct gmt_reader_info *i = r->info;

	if (i->damaged_blocks || i->skipped_bytes)
		return STATE_DAMAGED;
	if (running_writes(r))
		return STATE_RUNNING;
	if (!i->clean_end)
		return STATE_NO_END;
	return ended ? STATE_WHOLE : STATE_A_PART;
}
