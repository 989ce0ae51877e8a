/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the findings' sentences, in buffers that live until the end of the enclosing C block. */
#pragma once

#include "../base/human.h"
#include "diff.h"

#define SENTENCE 1200 /* bytes of a part */

#define PART ((char[SENTENCE]){ 0 })

#define B_TO_B(n, m) \
	human_apart((char[HUMAN_MAX]){ 0 }, n, m), human_apart((char[HUMAN_MAX]){ 0 }, m, n)
#define S(n)	       ((n) == 1 ? "" : "s")
#define SENTENCE_TIMES (HUMAN_MAX + 8)
#define TIMES(x)       sentence_times((char[SENTENCE_TIMES]){ 0 }, x)
#define WHO(o)	       sentence_owner(PART, o)

/* "2 times", "1/8". */
const char *sentence_times(char buf[SENTENCE_TIMES], double factor);
const char *sentence_owner(char buf[SENTENCE], const struct owner *o);
/* The changes of the finding's classes, the greatest first: "activations +3.0 MiB, ..." */
const char *sentence_classes(char buf[SENTENCE], const struct diff *d,
			     const struct diff_finding *f);
/* The changes of the finding's lines, the greatest first. */
const char *sentence_places(char buf[SENTENCE], const struct diff *d, const struct diff_finding *f);
/* The number of a finding's lines of code; its pair of a class with the greatest change, NULL =
 * none. */
size_t sentence_lines(const struct diff *d, const struct diff_finding *f);
const struct diff_pair *sentence_greatest(const struct diff *d, const struct diff_finding *f,
					  unsigned category);
/* ", called at train train.py:12", for memory of a module, whose own line does not show it. */
const char *sentence_caller(char buf[SENTENCE], const struct diff *d, const struct diff_finding *f);
/* "; a step has 4 backward passes instead of 1" */
const char *sentence_passes(char buf[SENTENCE], const struct diff *d);
/* "memory" if the class is unknown, or classes cannot be compared. */
const char *sentence_class(const struct diff *d, const struct diff_finding *f);
