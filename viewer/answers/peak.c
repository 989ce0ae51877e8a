/* SPDX-License-Identifier: Apache-2.0 */
#include "peak.h"

#include <stdlib.h>

static int by_bytes(const void *a, const void *b)
{
	const struct holder *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x->category < y->category ? -1 : x->category > y->category;
}

static void find_lines(struct peak_answer *a)
{
	const struct moment *mo = &a->shot.moment;
	struct holders all = { 0 };

	for (size_t i = 0; i < mo->count; i++)
		holders_add(&all,
			    (struct holder){
				    .category = a->shot.classes[i],
				    .owner = owners_find(&a->timeline->owners, &mo->blocks[i]) },
			    mo->blocks[i].size);
	if (all.count)
		qsort(all.items, all.count, sizeof(*all.items), by_bytes);
	a->lines = all.items;
	a->count = all.count;
}

void peak_find(struct peak_answer *a, struct timeline *t)
{
	const struct peak *peak = &model_curve(&t->model.devices[t->device])->peak;
	size_t step;

	*a = (struct peak_answer){ .timeline = t };
	snapshot_take(&a->shot, t, peak->event.seq);
	instant_of_peak(&a->instant, &t->steps, &t->model.spans, timeline_peak(t, &step),
			&t->owners);
	find_lines(a);
}

static bool line_row(void *ctx, size_t i, struct row_class_line *row)
{
	const struct peak_answer *a = ctx;
	const struct holder *h = &a->lines[i];

	*row = (struct row_class_line){
		.class = h->category, .owner = h->owner, .bytes = h->bytes, .blocks = h->blocks
	};
	return true;
}

struct row_peak peak_document(struct peak_answer *a)
{
	const struct moment *mo = &a->shot.moment;

	return (struct row_peak){ .device = mo->device,
				  .bytes = mo->bytes,
				  .time_ns = mo->time_ns,
				  .seq = mo->seq,
				  .step = a->instant.step,
				  .phase = phase_name(a->instant.phase),
				  .text = a->instant.text,
				  .reserved_bytes = mo->reserved,
				  .total_bytes = mo->total_bytes,
				  .categories = a->shot.bytes,
				  .lines = { a->count, line_row, a } };
}

void peak_free(struct peak_answer *a)
{
	free(a->lines);
	snapshot_free(&a->shot);
}
