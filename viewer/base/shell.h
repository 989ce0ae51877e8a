/* SPDX-License-Identifier: Apache-2.0 */
/* Quotes file names in commands that people paste into a shell. */
#pragma once

#include "usual.h"

#define SHELL_WORD (4 * PATH_MAX + 8)

/* The path as one word of a shell: quoted if needed, "./-x" if it would be an option. If a terminal
 * cannot show some of its bytes it is quoted as $'...', which bash and zsh read. */
const char *shell_word(const char *path, char buf[SHELL_WORD]);
