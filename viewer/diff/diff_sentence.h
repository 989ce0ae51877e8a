/* SPDX-License-Identifier: Apache-2.0 */
/* A sentence in the making; what does not fit is left out. */
#ifndef VIEWER_DIFF_SENTENCE_H
#define VIEWER_DIFF_SENTENCE_H

#include "diff.h"

struct sentence {
	char text[1200];
	size_t len;
};

void sentence_add(struct sentence *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void sentence_bytes(struct sentence *s, uint64_t bytes);
void sentence_owner(struct sentence *s, const struct owner *o);
/* The changes of the finding's classes, the greatest first: "activations +3.0 MiB, ..." */
void sentence_classes(struct sentence *s, const struct diff *d, const struct diff_finding *f);
/* ", called at train train.py:12", for what a module made. */
void sentence_caller(struct sentence *s, const struct diff *d, const struct diff_finding *f);
/* "; a step has 4 backward passes, had 1" */
void sentence_passes(struct sentence *s, const struct diff *d);

/* How many lines of code a finding has; its pair of that class with the greatest change, NULL =
 * none. */
size_t sentence_lines(const struct diff *d, const struct diff_finding *f);
const struct diff_pair *sentence_greatest(const struct diff *d, const struct diff_finding *f,
					  unsigned category);

/* diff_say_passes.c: what findings of these causes say. */
#define SAYS(name) \
	void diff_say_##name(struct sentence *s, const struct diff *d, const struct diff_finding *f)
SAYS(trained);
SAYS(recompute);
SAYS(compiled);
SAYS(recorded);
SAYS(reach);
SAYS(passes);
#undef SAYS

#endif
