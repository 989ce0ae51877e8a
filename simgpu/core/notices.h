/* SPDX-License-Identifier: Apache-2.0
 *
 * Notes for whoever started the program: notices.c.
 */
#ifndef SIMGPU_NOTICES_H
#define SIMGPU_NOTICES_H

#include <stdbool.h>

void note_once(bool *said, const char *word, const char *about);

#endif
