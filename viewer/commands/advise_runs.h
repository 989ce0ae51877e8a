/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of a program on a simulated card for `advise`: unchanged, and with each change that needs no
 * edit of the program. */
#ifndef VIEWER_ADVISE_RUNS_H
#define VIEWER_ADVISE_RUNS_H

#include "../ask/command.h"

/* advise -- COMMAND. Returns an exit code. */
int advise_runs(const struct advise_options *o, struct emit *out);

#endif
