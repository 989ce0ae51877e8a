/* SPDX-License-Identifier: Apache-2.0 */
/* A command of two runs: it runs once for each pair of recordings, in a process of its own. */
#pragma once

#include "../ask/command.h"

int of_pairs(const struct command *c, void *options, const struct options_common *common,
	     struct emit *out);
