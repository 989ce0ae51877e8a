/* SPDX-License-Identifier: Apache-2.0
 *
 * Notes for whoever started the program: notices.c.
 */
#pragma once

#include <stdbool.h>

void note_once(bool *said, const char *word, const char *about);
