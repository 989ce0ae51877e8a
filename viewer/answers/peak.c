/* SPDX-License-Identifier: Apache-2.0 */
#include "peak.h"

#include "../moments/room.h"
#include "parts.h"

void peak_find(struct peak_answer *a, struct timeline *t)
{
	const struct peak *peak = &model_curve(&t->model.devices[t->device])->peak;

	*a = (struct peak_answer){ .timeline = t };
	snapshot_take(&a->shot, t, peak->event.seq);
	instant_of_highest(&a->instant, t);
	a->lines = holders_of_blocks(&a->shot.moment, &t->owners, true);
}

/* Bytes used on the device at most, with its context and other libraries. */
static uint64_t used_on(const struct model_device *d)
{
	return d->driver.peak.bytes ? d->driver.peak.bytes + d->context : model_peak_reserved(d);
}

static bool peak_device_row(void *ctx, size_t i, struct row_peak_device *row)
{
	struct peak_answer *a = ctx;
	const struct defs *defs = &a->timeline->recording->defs;
	const struct model_device *d = &a->timeline->model.devices[i];
	const struct curve *c = model_curve(d);
	int device = (int)i;

	*row = (struct row_peak_device){ .device = device,
					 .card = device_card(defs, device, a->card,
							     sizeof(a->card)),
					 .simulated = device_is_simulated(defs, device),
					 .total_bytes = d->total_bytes,
					 .peak_bytes = c->peak.bytes,
					 .peak_time_ns = c->peak.event.time_ns,
					 .peak_reserved_bytes = model_peak_reserved(d),
					 .used_bytes = used_on(d),
					 .end_bytes = c->now,
					 .allocs = model_allocs(d),
					 .frees = model_frees(d),
					 .retries = d->retries,
					 .refusals = model_ooms(d) };
	return model_has_memory(d);
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
				  .largest_hole = room_at(a->shot.model, mo, NULL).hole,
				  .total_bytes = mo->total_bytes,
				  .categories = a->shot.bytes,
				  .lines = holders_rows(&a->lines),
				  .devices = { MODEL_DEVICES, peak_device_row, a } };
}

void peak_free(struct peak_answer *a)
{
	free(a->lines.items);
	moment_free(&a->shot.moment);
}
