/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two files of a session: the recording and the live file beside it.
 */
#pragma once

#include "../base/file.h"

struct output {
	struct file recording, live;
	const char *path, *live_path; /* as they were opened */
};

void output_setup(void); /* in the constructor: relative names are meant from here */

/* Makes both files. Files of those names are moved out of the way if they are an earlier run's and
 * this run may replace them, else other names are taken. false: errno says why,
 * output_get()->path what. */
bool output_open(void);
void output_begun(void); /* the first events are written: the earlier run's files go */
const struct output *output_get(void);

const char *output_start_dir(void); /* absolute; "" if it is not known */
bool output_is_ours(void);	    /* the descriptor still is the file that was opened */
void output_drop(void);		    /* close and remove both: nothing could be recorded; the earlier
				    run's files get their names back */
/* A file beside the recording that is to take its place; -1: it cannot be made. output_replace
 * gives it the recording's name and number (false: the recording is not to be found any more),
 * output_drop_part removes it. */
int output_part(void);
bool output_replace(void);
void output_drop_part(void);
void output_remove_live(void);
void output_forget(bool close_them); /* in a forked child */
