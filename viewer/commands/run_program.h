/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of a program file that matter for the preload. */
#pragma once

#include <time.h>

#include "../base/usual.h"

/* Where a shell finds the program; false: nowhere in the PATH. */
bool run_program_path(const char *name, char path[PATH_MAX]);

/* Whether the loader would ignore the preload for this program (a name as in a shell); if so, why,
 * as a sentence. */
bool run_program_obstacle(const char *name, char *text, size_t room);

/* Whether it cannot be started, or would not be recorded; if so, why, as a sentence. */
bool run_program_fails(const char *name, char *text, size_t room);

/* "train.py" that is not executable is run by Python: $GPUMEMTRACE_PYTHON, else python3. Returns
 * command or a new one. */
char **run_program_python(char **command);

/* Starts a program, passes signals on to it, waits for it. */

/* Runs a program and returns a shell's exit code: the program's own, 128 + n if signal n ended it,
 * 127 or 126 (after an error message) if it could not be started. Calls `watch` every second. */
int child_run(char **argv, void (*watch)(void *ctx), void *ctx);
int child_signal(void); /* that ended it; 0 = it ended by itself */

/* Paths of this installation's libraries, and the environment that loads them. */

/* Prepends to LD_PRELOAD and, for a simulated card (else NULL), to LD_LIBRARY_PATH. Returns 0, or
 * the exit code after an error message. */
int preload_set(const char *card);

/* Lets a linker find the simulated driver's library, and the CUDA runtime of this folder of
 * Python's packages, which have no names without a version. As above. */
int preload_link(const char *cuda);

/* Settings with which an engine runs on the simulated device: sets those of the packages that the
 * command's Python has, unless the environment has them, and prints each (not if quiet). */
void engine_settings_set(char *const *command, bool quiet);

/* The path of one of this installation's libraries; false: it is not there. */
bool library_find(const char *name, char path[PATH_MAX]);

/* Where `run` has its program record to, and what lies there from before. */

#define RUN_OUTPUT "gpumemtrace.%p.gmt" /* where it is not said */

/* The pattern with the folder of now before it, so that it means the same wherever the program
 * goes. 0, or a sentence was said and the exit code. */
int run_output_absolute(const char *pattern, char absolute[PATH_MAX]);

/* Recordings of an earlier run that this one replaces, as it would have to give other names because
 * of them: those that the pattern names on this host, and those that further processes made beside
 * them. Nothing is removed before something is recorded. */
struct run_old {
	char **paths;
	size_t count, room;
	uint64_t until; /* when the youngest was last changed (ns); 0: there are none */
};

/* Finds them, and lets the recorder replace them (GMT_REPLACE). A recording that a process is
 * writing is none; a pattern with %p names new files each time. Same return values: an existing
 * file that is no recording is refused. */
int run_output_find_old(const char *absolute, struct run_old *old);

/* Removes those that are left, once a process of this run has begun a recording. */
void run_output_remove_old(struct run_old *old);

/* The pattern for glob(): anything for a placeholder, then `more`. */
void run_output_glob(const char *pattern, const char *more, char *out, int room);

/* A path as one reads it here: without the folder that we are in. */
const char *run_output_short(const char *path);

/* The result of a program that `run` started: its recordings, or why there is none. */

/* Whether the recordings that `run` found are the ranks of one run, so that it can suggest their
 * folder. */

#define RUN_RANKS_MOST 4096 /* ranks are counted up to there */

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
	char **paths; /* of all of them, after which NULL */
	size_t path_room;
	bool refused; /* a process was refused memory, whatever came of it */
	struct run_ranks ranks;
	char why[2 * PATH_MAX]; /* why nothing was recorded; "" if there is a file */
	char runtime[PATH_MAX]; /* a file with NVIDIA's own runtime inside (of SIMGPU_NOTES), or ""
				 */
};

/* Before the start: prepares the notes that the program's processes write. */
void run_result_listen(void);

bool run_result_begun(void); /* whether a process has begun a recording, as far as notes say */

/* After the end: reads the notes, and else finds files of the pattern that are not older than
 * `start`. */
void run_result_find(struct run_result *r, char **command, const char *pattern,
		     const struct timespec *start);
