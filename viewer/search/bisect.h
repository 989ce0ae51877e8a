/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commit that raised or lowered the peak of a program, found by git's own bisect in a separate
 * worktree. Each commit is measured by a run on a simulated card.
 */
#ifndef VIEWER_BISECT_H
#define VIEWER_BISECT_H

#include "../base/amount.h"
#include "../base/emit.h"
#include "trial.h"

struct bisect {
	/* Set these: */
	const char *good, *bad;
	const char *max_peak; /* or NULL */
	struct amount limit;  /* of max_peak, or above the peak of `good` */
	struct plan plan;     /* its folder may be empty */
	struct card card;
	char **self; /* this command, for git to run on each commit */

	char top[PATH_MAX], prefix[PATH_MAX]; /* the user's tree, our path in it */
	char cwd[PATH_MAX], tree[PATH_MAX];   /* tree: the worktree */
	char good_id[48], bad_id[48];
	uint64_t limit_bytes;
	uint64_t fingerprint; /* of the command and the card */
	bool lowered;	      /* the peak of `bad` is the lower one */
	bool temporary, has_tree;
};

/* Performs the whole bisect. Returns 0, or an exit code after one error message. */
int bisect_perform(struct bisect *b, struct emit *out);

/* Called by git in the worktree: 0 good, 1 bad, 125 cannot be measured. */
int bisect_step(struct bisect *b);
bool bisect_is_step(void);

/* ---- bisect_tree.c ---- */
int bisect_open(struct bisect *b);   /* finds the repository, makes folder and worktree */
void bisect_close(struct bisect *b); /* and removes them */
/* Runs that commit, or reads its result; trial_free it. Not 0: the run could not be started. */
int bisect_measure(struct bisect *b, struct trial *t, const char *commit);
void bisect_interrupt(void); /* ends the current run; called by signal handlers */

/* ---- bisect_command.c ---- */
/* The command for the worktree at that commit; freed with vary_command_free. */
char **bisect_command(const struct bisect *b, const char *commit);
/* Hash of command, card and options. Recordings in a folder are reused only if it is equal. */
uint64_t bisect_fingerprint(const struct bisect *b);

/* Fills the submodules of the commit in `tree` from those of `top`; false if one could not be
 * made. */
bool submodules_fill(const char *top, const char *tree, int depth);

#endif
