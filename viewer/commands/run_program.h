/* SPDX-License-Identifier: Apache-2.0 */
/* How `run` and the searches start a program: obstacles to the preload, signals, libraries, names
 * of recordings, results. */
#pragma once

#include <time.h>

#include "../base/usual.h"

/* The file that a shell would run; false: none is in the PATH. */
bool run_program_path(const char *name, char path[PATH_MAX]);

/* Whether the loader would ignore the preload for this program (a name as in a shell). If so,
 * `text` is the reason, a sentence. */
bool run_program_obstacle(const char *name, char *text, size_t room);

/* Whether it cannot be started, or would not be recorded. `text` as above. */
bool run_program_fails(const char *name, char *text, size_t room);

/* Puts Python ($GPUMEMTRACE_PYTHON, else python3) before a *.py that is not executable. Returns
 * command or a new array. */
char **run_program_python(char **command);

/* Runs a program and returns a shell's exit code: the program's own, 128 + n if signal n ended it,
 * 127 or 126 (after an error message) if it could not be started. Calls `watch` every second. */
int child_run(char **argv, void (*watch)(void *ctx), void *ctx);
int child_signal(void); /* the signal that ended it; 0 = none */

/* Paths of this installation's libraries, and the environment that loads them. */

/* Prepends to LD_PRELOAD and, for a simulated card (else NULL), to LD_LIBRARY_PATH. Returns 0, or
 * the exit code after an error message. */
int preload_set(const char *card);

/* Lets a linker find the simulated driver and, in Python's packages (`cuda`: the folder above
 * bin/nvcc), the CUDA runtime without a version in its name. Return value as above. */
int preload_link(const char *cuda);

/* Sets the settings with which the engines in the command's Python run on the simulated device,
 * except those that the environment has. Prints each (not if quiet). */
void engine_settings_set(char *const *command, bool quiet);

/* The path of one of this installation's libraries; false: it is not there. */
bool library_find(const char *name, char path[PATH_MAX]);

/* The recordings that `run` writes, and earlier ones of the same names. */

#define RUN_OUTPUT "gpumemtrace.%p.gmt" /* default */

/* Makes the pattern absolute, so that it stays the same if the program changes its folder. Returns
 * 0, or an exit code after an error message. */
int run_output_absolute(const char *pattern, char absolute[PATH_MAX]);

/* Recordings of an earlier run that this one replaces: those that the pattern names on this host,
 * and those that further processes wrote beside them (.PID). Nothing is removed before something is
 * recorded. */
struct run_old {
	char **paths;
	size_t count, room;
	uint64_t until; /* when the youngest was last changed (ns); 0: there are none */
};

/* Finds them, and lets the recorder replace them (GMT_REPLACE). Leaves out a recording that a
 * process still writes. A pattern with %p has none, because it names new files each time. Return
 * value as above; an existing file that is not a recording is an error. */
int run_output_find_old(const char *absolute, struct run_old *old);

/* Removes those that were not replaced, once a process of this run has begun a recording. */
void run_output_remove_old(struct run_old *old);

/* Makes a pattern for glob(): * for each placeholder, and `more` before the ending. */
void run_output_glob(const char *pattern, const char *more, char *out, int room);

/* The result of a program that `run` started: its recordings, or why there is none. */

/* Whether the found recordings are the ranks of one run, so that `run` can suggest their folder. */

#define RUN_RANKS_MOST 4096 /* higher ranks are not counted */

struct run_ranks {
	char folder[PATH_MAX]; /* of all recordings so far, "" before the first */
	bool several_folders;
	unsigned count; /* of different ranks */
	unsigned char seen[RUN_RANKS_MOST / 8];
};

/* The folder, if there are several ranks and all recordings lie in it; else NULL. */
const char *run_ranks_folder(const struct run_ranks *r);

struct run_result {
	char path[PATH_MAX]; /* the recording with most events */
	uint64_t events, files;
	char **paths; /* all recordings; ends with NULL */
	size_t path_room;
	bool refused; /* an allocation of a process was refused */
	struct run_ranks ranks;
	char why[2 * PATH_MAX]; /* why nothing was recorded; "" if there is a file */
	char runtime[PATH_MAX]; /* file that contains NVIDIA's runtime; "" = none */
};

/* Before the start: prepares the notes that the program's processes write. */
void run_result_listen(void);

bool run_result_begun(void); /* whether a process has begun a recording, as far as notes say */

/* After the end: reads the notes. Without notes, finds files of the pattern that are not older than
 * `start`. */
void run_result_find(struct run_result *r, char **command, const char *pattern,
		     const struct timespec *start);
