/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces reader_ahead.c in the traced program and on platforms without threads. */
#include "reader_ahead.h"

struct reader_ahead *reader_ahead_begin(struct gmt_reader *r, size_t first,
					const struct reader_times *t)
{
	(void)r, (void)first, (void)t;
	return NULL;
}

void reader_ahead_take(struct reader_ahead *a, size_t block, struct reader_events *out)
{
	(void)a, (void)block, (void)out;
}

void reader_ahead_end(struct reader_ahead *a)
{
	(void)a;
}
