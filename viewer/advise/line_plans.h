/* SPDX-License-Identifier: Apache-2.0 */
/* Plans by the line of code that made the blocks. */
#pragma once

#include "advise.h"

struct line_plan {
	struct owner owner;
	struct life_plan plan;
	uint64_t bytes, blocks; /* gone at the peak */
	size_t lines;		/* see find_pairs.c */
};

struct line_plans {
	struct map ids; /* stack and backward node -> index */
	struct line_plan *items;
	size_t count, room;
};

struct line_plan *lines_of(struct line_plans *p, struct advise *a, const struct advised *l);
/* Leaves the life out from the event on. */
void lines_without(struct line_plans *p, struct advise *a, const struct advised *l, uint64_t from);
/* Adds a finding of all lines that held something at the peak, named by the largest: one variable
 * may hold what several lines made. At least what the largest line's blocks save. Frees the lines.
 */
struct finding *lines_add_all(struct line_plans *p, struct advise *a, const char *kind);
void lines_free(struct line_plans *p);
