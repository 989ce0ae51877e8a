/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts that let a shell complete commands and options, made from the commands' own tables. */
#pragma once

#include "../ask/command.h"

/* shell: "bash" or "zsh". Returns an exit code, for other shells after an error message. */
int completions_print(FILE *out, const char *shell, const struct command *const *commands,
		      size_t count);
