/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a run its recording has. */
#ifndef VIEWER_RUN_STATE_H
#define VIEWER_RUN_STATE_H

#include "recording.h"

enum recording_state {
	STATE_WHOLE,
	STATE_DAMAGED, /* parts of the file cannot be read */
	STATE_RUNNING, /* the process still writes it */
	STATE_NO_END,  /* the program was killed or crashed, or the file was cut */
	STATE_A_PART,  /* a whole file, and not of the whole run: a snapshot, or recovered */
};

/* ended: the run's last event was read. */
enum recording_state recording_state(const struct recording *r, bool ended);

#endif
