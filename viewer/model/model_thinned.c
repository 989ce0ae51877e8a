/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands for events that a bounded recording left out: they came and went, so nothing is alive
 * of them afterwards; how high they were counts for peaks, of the run and of each step.
 */
#include "model_parts.h"

static void touch(struct model *m, struct curve *c, uint64_t bytes, const struct gmt_event *e)
{
	uint64_t was = c->now;

	if (bytes <= was)
		return;
	model_set(m, c, bytes, e);
	c->now = was;
}

void model_thinned(struct model *m, const struct gmt_event *e)
{
	struct model_device *d = model_device(m, e->device);

	m->events += e->size ? e->size - 1 : 0;
	m->left_out += e->size;
	if (!d)
		return;
	touch(m, d->framework ? &d->blocks : &d->driver, e->arg0, e);
	if (d->framework)
		touch(m, &d->reserved, e->arg1, e);
	*(d->framework ? &d->block_allocs : &d->driver_allocs) += e->stream;
	*(d->framework ? &d->block_frees : &d->driver_frees) += e->stream;
}
