/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of the program on one simulated card with one setting: started, followed until its end or
 * until its peak is stable, and measured. The result is kept as NAME.json in the folder of the
 * search, with the recording NAME.gmt, the output NAME.log and the page NAME.html. A later search
 * reuses it.
 */
#ifndef VIEWER_TRIAL_H
#define VIEWER_TRIAL_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "../base/emit.h"
#include "../base/json.h"
#include "vary.h"
#include "watched.h"
#include "world.h"

struct card {
	char name[96]; /* as SIMGPU_CARD has it */
	uint64_t memory, context;
	int major, minor, code, processors;
};

/* Settings shared by all runs of a search. */
struct plan {
	char *const *command;
	struct varied varied;
	char folder[PATH_MAX];
	bool pages;	    /* each run gets its page */
	long steps;	    /* that must follow the last rise of the peak, */
	long look;	    /* and seconds of them; 0: the duration of `steps` */
	bool to_end;	    /* or the whole run */
	long seconds;	    /* time limit of a run */
	bool patient;	    /* data preparation may then take as long */
	struct world world; /* size 0: the command's own number of ranks */
	const char *python; /* simulates the ranks of the world that do not run */
	unsigned threads;   /* for each run, where the program does not set its own */
};

enum ending { ENDING_NONE, ENDING_FITS, ENDING_REFUSED, ENDING_UNSTABLE, ENDING_FAILED };

/* "does not fit", as in the documented JSON. */
const char *trial_verdict(enum ending e);

struct trial {
	const struct card *card;
	struct setting setting;
	char name[200]; /* name of its files */
	char fingerprint[20];

	enum ending verdict;
	uint64_t peak, reserved; /* of the framework: allocated and reserved */
	uint64_t device;	 /* peak use of the device, by all processes */
	uint64_t context; /* of that, the context and libraries' memory without a recorded call */
	uint64_t asked;	  /* how often the program queried free memory */
	uint64_t refusals, resident; /* resident: bytes of the machine's memory */
	uint64_t steps;
	uint64_t early; /* 1: the run was ended early */
	/* Steps, or seconds of device work, and the growth of the peak per unit, if any. */
	uint64_t units, by_steps, rising;
	uint64_t limit; /* time limit in seconds, if the run exceeded it; else 0 */
	uint64_t nccl, nccl_least, nccl_most; /* NCCL's part of device, with its range */
	uint64_t code;			      /* exit code */
	bool fresh;			      /* run now, not read from the folder */
	char *doing; /* shared by both processes: what the run waits for, or NULL */
	char *text;  /* contents of NAME.json */
	struct json document;
};

/* Hash of the run's options, the settings of PyTorch and CUDA, and the text of `files` (NULL: the
 * files that the command names). */
uint64_t trial_hash(const struct trial *t, const struct plan *p, const char *const *files);
void trial_init(struct trial *t, const struct plan *p, const struct card *card,
		const struct setting *setting);
void trial_free(struct trial *t);

/* Defaults: seconds for a run, seconds of steps to observe, and a number of steps if that takes
 * longer. */
#define TRIAL_SECONDS 3600
#define TRIAL_LOOK    60
#define TRIAL_STEPS   2
#define TRIAL_DOING   256

/* Reads the result of an earlier search; false if there is none, or it is of another command. */
bool trial_read(struct trial *t, const struct plan *p);

/* Name of the launcher that starts ranks, if the command is one; else NULL. */
const char *trial_launcher(char *const *command);

/* Called in a process of its own. Leaves the result in the folder and returns an exit code. */
int trial_run(const struct trial *t, const struct plan *p);

/* "DIR/NAME" with that file name ending. */
void trial_path(const struct trial *t, const struct plan *p, const char *ending,
		char path[PATH_MAX]);

/* Writes its figures as members of the open object, for trial_read. */
void trial_write_figures(const struct trial *t, struct emit *out);

const char *trial_string(const struct trial *t, const char *member, char *buf, size_t room);

/* The failure in short ("the program failed"), and its cause: "exit code 1: ..." with the last line
 * of output, or that it hangs. */
const char *trial_failed(const struct trial *t);
const char *trial_failure(const struct trial *t, char *buf, size_t room);
/* Prints both as one sentence; returns an exit code. */
int trial_say_failure(const struct trial *t, const struct plan *p);

/* The file of SIMGPU_USAGE (simgpu/core/usage.c). */
#define USAGE_MAGIC   0x3145474153554d53ull
#define USAGE_DEVICES 16
struct usage {
	uint64_t magic, memory, context, refused, asked, peak[USAGE_DEVICES], nccl[3], work;
};

/* Between trial.c, which runs the program, and trial_measure.c, which reads the recordings. */
struct trial_end {
	int code;
	bool early;		      /* it was ended early */
	enum stable_says stable;      /* if so: whether its peak is stable, */
	struct watched_course course; /* based on this */
	char hangs[512];	      /* why, or ""; idle: the peak is stable */
	char idle[512];
	char late[512]; /* why time ran out, or "" */
	bool partly;	/* if so: a whole step was recorded, which the figures describe */
	uint64_t resident;
};
int trial_measure(const struct trial *t, const struct plan *p, const struct trial_end *end);

/* Recordings of the run, by name, ending with NULL; freed with vary_command_free. living: only
 * those of processes that still write. */
char **trial_recordings(const struct trial *t, const struct plan *p);
char **trial_living(const struct trial *t, const struct plan *p);
/* Completes them, after their processes were ended here, and frees the list. */
void trial_complete(char **living);

#endif
