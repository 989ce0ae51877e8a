/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command and the recordings it was given: one, all of a run, or that of one rank. A command
 * itself knows of one recording only; it runs once for each, in a process of its own.
 */
#pragma once

#include "../ask/command.h"

int of_ranks(const struct command *c, void *options, const struct options_common *common,
	     struct emit *out);
