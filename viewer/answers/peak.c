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
				  .lines = holders_rows(&a->lines) };
}

void peak_free(struct peak_answer *a)
{
	free(a->lines.items);
	moment_free(&a->shot.moment);
}
