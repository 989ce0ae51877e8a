/* SPDX-License-Identifier: Apache-2.0
 *
 * Notices to the user who started the program (notices.c).
 */
#pragma once

#include <stdbool.h>

void note_once(bool *said, const char *word, const char *about);
