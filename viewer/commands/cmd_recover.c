/* SPDX-License-Identifier: Apache-2.0 */
/* recover: copies the readable events of a recording and its live file into a new recording. */
#include "../recording/copying.h"
#include "../ask/command.h"

static void print_copy(struct emit *out, const struct recording *r, uint64_t events,
		       const struct recover_options *o)
{
	const struct row_recover row = { .file = o->output,
					 .events = events,
					 .live_events = r->info->live_events,
					 .damaged_blocks = r->info->damaged_blocks,
					 .skipped_bytes = r->info->skipped_bytes };

	emit_document(out, recover, &row);
	emit_line(out, "%s: %s, %" PRIu64 " of them from the live file", o->output,
		  MANY(events, "event"), r->info->live_events);
	if (r->info->damaged_blocks || r->info->skipped_bytes)
		emit_line(out,
			  "lost: damaged blocks: %" PRIu64 ", bytes that belong to none: %" PRIu64,
			  r->info->damaged_blocks, r->info->skipped_bytes);
}

int run_recover(const struct recover_options *o, struct emit *out, struct recording *r)
{
	uint64_t events;
	int rc = copying_write(r, o->output, COPYING_YES, &events);

	if (!rc)
		print_copy(out, r, events, o);
	return rc;
}
