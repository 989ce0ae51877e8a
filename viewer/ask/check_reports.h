/* SPDX-License-Identifier: Apache-2.0 */
/* What `check` found, for machines that run tests. */
#ifndef VIEWER_CHECK_REPORTS_H
#define VIEWER_CHECK_REPORTS_H

#include <stdio.h>

#include "../base/emit.h"
#include "bounds.h"

/* JUnit's XML: a test for each bound. */
void check_junit(FILE *f, const struct bounds *all, size_t count);

/* GitHub's workflow commands, which Forgejo and Gitea know too: a line for each bound that does not
 * hold, at the line of code that holds most of it where that is below the working directory. */
void check_annotations(struct emit *out, const struct bounds *all, size_t count);

#endif
