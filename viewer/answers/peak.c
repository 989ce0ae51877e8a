/* SPDX-License-Identifier: Apache-2.0 */
#include "peak.h"

void peak_find(struct peak_answer *a, struct timeline *t)
{
	const struct peak *peak = &model_curve(&t->model.devices[t->device])->peak;

	*a = (struct peak_answer){ .timeline = t };
	snapshot_take(&a->shot, t, peak->event.seq);
	instant_of_highest(&a->instant, t);
	a->lines = holders_of_blocks(&a->shot.moment, &t->owners, true);
}

static bool peak_line_row(void *ctx, size_t i, struct row_class_line *row)
{
	const struct peak_answer *a = ctx;

	*row = holder_line(&a->lines.items[i]);
	return true;
}

struct row_peak peak_document(struct peak_answer *a)
{
	const struct moment *mo = &a->shot.moment;

	return (struct row_peak){ .device = mo->device,
				  .bytes = moments_bytes(a->shot.model, mo),
				  .time_ns = mo->time_ns,
				  .seq = mo->seq,
				  .step = a->instant.step,
				  .phase = phases[a->instant.phase].name,
				  .text = a->instant.text,
				  .reserved_bytes = mo->reserved,
				  .total_bytes = mo->total_bytes,
				  .categories = a->shot.bytes,
				  .lines = { a->lines.count, peak_line_row, a } };
}

void peak_free(struct peak_answer *a)
{
	free(a->lines.items);
	moment_free(&a->shot.moment);
}
