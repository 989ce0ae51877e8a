/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of a program on a simulated card for `advise`: unchanged, and with each change that needs no
 * edit of the program. */
#ifndef VIEWER_ADVISE_RUNS_H
#define VIEWER_ADVISE_RUNS_H

#include <limits.h>

#include "../advise/advise.h"

struct advise_runs {
	char **command, **tries; /* tries: each NAME=VALUE or env:NAME=VALUE, or NULL */
	const char *card;
	long steps;
	/* Set here: */
	char folder[PATH_MAX];
	char *recording; /* of the program as it is */
};

/* Runs it unchanged. Returns 0, or an exit code after one error message; to be freed in any
 * case. */
int advise_runs_begin(struct advise_runs *r);
/* Runs each requested change and each environment setting of a finding; the findings get the
 * measured savings. */
int advise_runs_try(struct advise_runs *r, struct advise *a);
void advise_runs_free(struct advise_runs *r);

#endif
