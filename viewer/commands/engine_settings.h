/* SPDX-License-Identifier: Apache-2.0 */
/* Settings with which serving engines run on the simulated device. */
#ifndef VIEWER_ENGINE_SETTINGS_H
#define VIEWER_ENGINE_SETTINGS_H

/* Sets those of the packages that the command's Python has, unless the environment has them, and
 * prints each (not if quiet). */
void engine_settings_set(char *const *command, bool quiet);

#endif
