/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of a program on a simulated card for `advise`: as it is, and with each change that needs no
 * edit of it. */
#ifndef VIEWER_ADVISE_RUNS_H
#define VIEWER_ADVISE_RUNS_H

#include "../advise/advise.h"
#include "../search/search.h"

struct advise_runs {
	char **command, **tries; /* tries: each NAME=VALUE or env:NAME=VALUE, or NULL */
	const char *card;
	long steps;
	struct search base;
	char **recordings; /* of the program as it is */
};

/* Runs it as it is. 0, or a sentence was said and the exit code; to be freed in any case. */
int advise_runs_begin(struct advise_runs *r);
/* Each that is asked for and each setting of the environment that a finding has: the findings get
 * what was measured. */
int advise_runs_try(struct advise_runs *r, struct advise *a);
void advise_runs_free(struct advise_runs *r);

#endif
