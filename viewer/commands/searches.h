/* SPDX-License-Identifier: Apache-2.0 */
/* Searches that run a program on simulated cards: fit, bisect, and the runs of `advise`. */
#pragma once

#include "../ask/command.h"

/* advise -- COMMAND. Returns an exit code. */
int advise_runs(const struct advise_options *o, struct emit *out);
