/* SPDX-License-Identifier: Apache-2.0 */
#include "run_state.h"

#include <string.h>

#include "copying.h"
#include "running.h"

enum recording_state recording_state(const struct recording *r)
{
	const struct gmt_reader_info *i = r->info;

	if (i->damaged_blocks || i->skipped_bytes)
		return STATE_DAMAGED;
	if (running_writes(r))
		return STATE_RUNNING;
	if (!i->clean_end)
		return STATE_NO_END;
	if (!r->read_through || r->ended)
		return STATE_WHOLE;
	return !strcmp(defs_meta(&r->defs, COPYING_META).s, COPYING_SEARCH) ? STATE_SEARCH
									    : STATE_A_PART;
}

/* They are read at once, or later on a page: none says "now". */
static const char *const sentences[] = {
	[STATE_WHOLE] = NULL,
	[STATE_DAMAGED] = "The file is damaged (see gpumemtrace verify): these figures are "
			  "those of the readable part.",
	[STATE_RUNNING] = "The program was still running when this was read: figures are up to "
			  "then.",
	[STATE_NO_END] =
		"The program was killed or crashed, or the file was cut: figures are up to "
		"the last event.",
	[STATE_A_PART] = "The recording stops before the run's end (a snapshot, or recovered): "
			 "figures are up to there.",
	[STATE_SEARCH] = "gpumemtrace ended the run, which it had started (fit, bisect, advise): "
			 "figures are up to then.",
};

const char *recording_state_sentence(enum recording_state state)
{
	return sentences[state];
}
