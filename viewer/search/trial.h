/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of the program on one simulated card with one setting: started, followed until its end or
 * until its peak is stable, measured. What came of it is kept as NAME.json in the folder of the
 * search, beside its recording NAME.gmt, what it printed NAME.log, and its page NAME.html; a search
 * that goes on takes what is there.
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

/* What all runs of a search have in common. */
struct plan {
	char *const *command;
	struct varied varied;
	char folder[PATH_MAX];
	bool pages;	    /* each run gets its page */
	long steps;	    /* to go on after the peak last rose, */
	long look;	    /* and seconds of steps to look at; 0: as many as `steps` take */
	bool to_end;	    /* or all of the run */
	long seconds;	    /* that a run may take, at most */
	bool patient;	    /* then it may prepare its data for as long */
	struct world world; /* its size 0: as the command starts its ranks */
	unsigned threads;   /* for each run, where the program does not set its own */
};

enum ending { ENDING_NONE, ENDING_FITS, ENDING_REFUSED, ENDING_UNSTABLE, ENDING_FAILED };

/* "does not fit", as the contract has it. */
const char *trial_verdict(enum ending e);

struct trial {
	const struct card *card;
	struct setting setting;
	char name[200]; /* of its files */
	char fingerprint[20];

	enum ending verdict;
	uint64_t peak, reserved; /* of the framework's blocks and its cache */
	uint64_t device;	 /* the most that was used of the device, by anybody */
	uint64_t context; /* of that, a context and what libraries took by no recorded call */
	uint64_t asked;	  /* how often the program asked what is free */
	uint64_t refusals, resident; /* resident: bytes of the machine's memory */
	uint64_t steps;
	uint64_t early; /* 1: the run was ended before its end */
	/* Steps, or seconds of work on the device, and by how much each raises the peak, if so. */
	uint64_t units, by_steps, rising;
	uint64_t limit; /* of the seconds that it was given, if they were up: else 0 */
	uint64_t nccl, nccl_least, nccl_most; /* of device, and how little and how much it may be */
	uint64_t code;			      /* exit code */
	bool fresh;			      /* it was run now, not taken from the folder */
	char *doing; /* TRIAL_DOING bytes that both processes see, or NULL: what it waits for */
	char *text;  /* of NAME.json */
	struct json document;
};

/* The run's options, the settings of PyTorch and CUDA, and the text of `files` (NULL: of those that
 * the command names). */
uint64_t trial_hash(const struct trial *t, const struct plan *p, const char *const *files);
void trial_init(struct trial *t, const struct plan *p, const struct card *card,
		const struct setting *setting);
void trial_free(struct trial *t);

/* Where nothing else was asked for: seconds for a run, seconds of steps to look at, and steps where
 * that is longer. */
#define TRIAL_SECONDS 3600
#define TRIAL_LOOK    60
#define TRIAL_STEPS   2
#define TRIAL_DOING   256

/* Of an earlier search; false: there is none, or of another command. */
bool trial_read(struct trial *t, const struct plan *p);

/* The name of what starts ranks by itself, if the command is such; else NULL. */
const char *trial_launcher(char *const *command);

/* In a process of its own: leaves the result in the folder. An exit code. */
int trial_run(const struct trial *t, const struct plan *p);

/* "DIR/NAME" and the ending. */
void trial_path(const struct trial *t, const struct plan *p, const char *ending,
		char path[PATH_MAX]);

/* Its figures as members of the object that is open, for trial_read. */
void trial_write_figures(const struct trial *t, struct emit *out);

const char *trial_string(const struct trial *t, const char *member, char *buf, size_t room);

/* That it failed ("the program failed"), and why: "exit code 1: ..." and what it printed last, or
 * that it hangs. */
const char *trial_failed(const struct trial *t);
const char *trial_failure(const struct trial *t, char *buf, size_t room);
/* Both as one sentence; an exit code. */
int trial_say_failure(const struct trial *t, const struct plan *p);

/* The file of SIMGPU_USAGE (simgpu/core/usage.c). */
#define USAGE_MAGIC   0x3145474153554d53ull
#define USAGE_DEVICES 16
struct usage {
	uint64_t magic, memory, context, refused, asked, peak[USAGE_DEVICES], nccl[3], work;
};

/* Between trial.c, which starts, and trial_measure.c, which reads what was recorded. */
struct trial_end {
	int code;
	bool early;		      /* it was ended here, while it went on */
	enum stable_says stable;      /* then: whether its peak is, */
	struct watched_course course; /* by this */
	char hangs[512]; /* empty: it does not; idle: it is stable, and does nothing more */
	char idle[512];
	char late[512]; /* empty: there was time enough */
	bool partly;	/* then: a whole step was seen, which the figures are of */
	uint64_t resident;
};
int trial_measure(const struct trial *t, const struct plan *p, const struct trial_end *end);

/* Recordings of the run, by name, a NULL behind the last; to be freed with vary_command_free.
 * living: of processes that still write them. */
char **trial_recordings(const struct trial *t, const struct plan *p);
char **trial_living(const struct trial *t, const struct plan *p);
/* Makes them whole, after these processes were ended here, and frees the list. */
void trial_complete(char **living);

#endif
