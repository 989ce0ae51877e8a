/* SPDX-License-Identifier: Apache-2.0 */
/* A run's rows as text, and what stands behind them in JSON. */
#pragma once

#include "../answers/document.h"
#include "ranks_table.h"
#include "ranks_stray.h"

/* JSON, in the array "ranks", as soon as a row is there: what the command says, whole. */
void ranks_print_row(struct emit *out, const struct ranks_row *row, const struct ranks_result *r);

/* The document of a run; "ranks" is written row by row before the rest of it. */
struct ranks_answer {
	const struct ranks_table *table;
	const struct ranks_strays *strays;
	struct ranks_sums all, of_host;
	size_t row; /* row of the figure that is being written */
	struct ranks_elsewhere *elsewhere;
	bool *missing;
};

struct row_ranks ranks_answer(struct ranks_answer *d); /* table and strays are set */
void ranks_answer_free(struct ranks_answer *d);

void ranks_print_text(struct emit *out, const struct ranks_table *t, const struct ranks_strays *s);
