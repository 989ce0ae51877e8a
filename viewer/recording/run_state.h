/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a run its recording has, and the sentence that says so. */
#ifndef VIEWER_RUN_STATE_H
#define VIEWER_RUN_STATE_H

#include "recording.h"

enum recording_state {
	STATE_WHOLE,
	STATE_DAMAGED, /* parts of the file cannot be read */
	STATE_RUNNING, /* the process still writes it */
	STATE_NO_END,  /* the program was killed or crashed, or the file was cut */
	STATE_A_PART,  /* a whole file, and not of the whole run: a snapshot, or recovered */
	STATE_SEARCH,  /* the same: fit, bisect or advise ended the run, which they had started */
};

/* Of a recording of which events were not passed on it is not known whether it is a part. */
enum recording_state recording_state(const struct recording *r);

/* A whole sentence that qualifies the figures of an answer; NULL for a whole recording. */
const char *recording_state_sentence(enum recording_state state);

#endif
