/* SPDX-License-Identifier: Apache-2.0 */
/* Settings with which an engine runs on the simulated device. */
#pragma once

#include "../base/usual.h"

/* Sets those of the packages that the command's Python has, unless the environment has them, and
 * prints each (not if quiet). */
void engine_settings_set(char *const *command, bool quiet);
