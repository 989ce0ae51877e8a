/* SPDX-License-Identifier: Apache-2.0 */
/* Names in commands that people are to paste into a shell. */
#pragma once

#include "usual.h"

#define SHELL_WORD (4 * PATH_MAX + 8)

/* The path as one word: in quotes where it needs them, "./-x" if it would be an option. Bytes that
 * a terminal cannot show stand in $'...', which bash and zsh know. */
const char *shell_word(const char *path, char buf[SHELL_WORD]);
