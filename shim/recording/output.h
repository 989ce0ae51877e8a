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

void output_setup(void); /* in the constructor: notes the folder for relative names */

/* Makes both files. Files of those names are moved out of the way if they are an earlier run's and
 * this run may replace them, else other names are taken. False: errno has the error,
 * output_get()->path the name. */
bool output_open(void);
void output_begun(void); /* the first events are written: removes the earlier run's files */
const struct output *output_get(void);

const char *output_start_dir(void); /* absolute; "" if it is not known */
bool output_is_ours(void);	    /* the descriptor still is the file that was opened */
void output_drop(void);		    /* close and remove both: nothing could be recorded; the earlier
				    run's files get their names back */
/* output_part makes a file beside the recording and returns its descriptor, or -1. output_replace
 * puts it in the place of the recording (false: that is not found any more), output_drop_part
 * removes it. */
int output_part(void);
bool output_replace(void);
void output_drop_part(void);
void output_remove_live(void);
void output_forget(bool close_them); /* in a forked child */
