/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about recordings, found by the command's name. */
#pragma once

#include "command.h"

const struct command *question_find(const char *name); /* or NULL */
