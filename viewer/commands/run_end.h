/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a program that failed had run out of memory. */
#ifndef VIEWER_RUN_END_H
#define VIEWER_RUN_END_H

#include "../base/shell.h"
#include "../oom/summary.h"
#include "run_result.h"

struct run_end {
	char text[SUMMARY_TEXT +
		  64];	       /* why it ran out of memory; "": it did not, as far as known */
	char file[SHELL_WORD]; /* what `oom` is to look at */
};

/* Reads recordings only if the program failed and was refused memory. */
void run_end_find(struct run_end *e, const struct run_result *f, int code);
void run_end_tell(const struct run_end *e);

#endif
