/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline.h"

#include "moments.h"

static int event(void *ctx, const struct gmt_event *e)
{
	struct timeline *t = ctx;

	model_event(&t->model, e);
	spans_event(&t->spans, e);
	return 0;
}

/* A first run over the events. */
static int choose_device(struct timeline *t, struct recording *r, long wanted)
{
	struct model survey;
	int rc = moments_survey(r, &survey, NULL);

	if (!rc)
		rc = moments_device(r, &survey, wanted, &t->device);
	if (!rc)
		t->framework = survey.devices[t->device].framework;
	model_free(&survey);
	return rc;
}

int timeline_open(struct timeline *t, struct recording *r, long device)
{
	int rc = choose_device(t, r, device);

	if (rc)
		return rc;
	t->recording = r;
	model_init(&t->model, &r->defs);
	stacks_init(&t->stacks, &r->defs, symbols_new(&r->defs));
	owners_init(&t->owners, &t->stacks);
	spans_init(&t->spans, &t->model, t->device, t->framework, &t->stacks);
	rc = recording_run(r, UINT64_MAX, event, t);
	steps_find(&t->steps, &t->spans);
	if (rc)
		timeline_close(t);
	return rc;
}

void timeline_close(struct timeline *t)
{
	steps_free(&t->steps);
	spans_free(&t->spans);
	owners_free(&t->owners);
	symbols_free(t->stacks.symbols);
	stacks_free(&t->stacks);
	model_free(&t->model);
}

const struct extent *timeline_peak(const struct timeline *t, size_t *step)
{
	const struct extent *best = &t->steps.items[0].extent;

	*step = 0;
	for (size_t i = 1; i < t->steps.count; i++) {
		if (t->steps.items[i].extent.peak <= best->peak)
			continue;
		best = &t->steps.items[i].extent;
		*step = i;
	}
	return best;
}
