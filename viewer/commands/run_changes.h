/* SPDX-License-Identifier: Apache-2.0 */
/* The changes that `run --with` makes in its program, and their results. */
#pragma once

#include "../ask/command.h"

struct run_changes {
	const char *python;
	char folder[PATH_MAX]; /* "": no changes */
	struct row_run_change *made;
	size_t count, room;
	bool missed; /* one could not be made */
	int code;
};

/* Checks the names (NAME=VALUE) and sets the environment. Returns 0, or an exit code after an error
 * message. */
int run_changes_begin(struct run_changes *c, char **names, char *const *command);
void run_changes_drop(struct run_changes *c); /* if no program was started */
void run_changes_end(struct run_changes *c);  /* after the program: finds what was done */
void run_changes_say(const struct run_changes *c);
