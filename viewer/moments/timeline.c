/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline.h"

#include "moments.h"

struct run {
	struct timeline *timeline;
	struct series_replay *replay; /* or NULL */
};

static void begin(struct timeline *t)
{
	const struct defs *defs = &t->recording->defs;

	model_init(&t->model, defs);
	stacks_init(&t->stacks, defs, symbols_new(defs));
	owners_init(&t->owners, &t->stacks);
}

void timeline_begin(struct timeline *t, struct recording *r, const struct model *facts)
{
	*t = (struct timeline){ .recording = r,
				.device = t->device,
				.framework = facts->devices[t->device].framework };
	begin(t);
	spans_init(&t->spans, &t->model, t->device, t->framework, &t->stacks);
}

void timeline_event(struct timeline *t, const struct gmt_event *e)
{
	model_event(&t->model, e);
	spans_event(&t->spans, e);
}

static int event(void *ctx, const struct gmt_event *e)
{
	struct run *run = ctx;

	model_event(&run->timeline->model, e);
	if (run->replay)
		series_look(run->replay, e);
	spans_event(&run->timeline->spans, e);
	return 0;
}

static int second_run(struct timeline *t, struct recording *r, const struct model *facts,
		      struct series *s)
{
	struct run run = { .timeline = t };
	int rc;

	timeline_begin(t, r, facts);
	if (s)
		run.replay = series_begin(s, r, facts, &t->owners, &t->model);
	rc = recording_run(r, UINT64_MAX, event, &run);
	if (s)
		series_end(run.replay);
	model_settle(&t->model);
	steps_find(&t->steps, &t->spans);
	return rc;
}

int timeline_open_known(struct timeline *t, struct recording *r, const struct model *facts,
			long device, struct series *s)
{
	int rc = moments_device(r, facts, device, &t->device);

	if (rc)
		return rc;
	rc = second_run(t, r, facts, s);
	if (rc) {
		timeline_close(t);
		if (s)
			series_close(s);
	}
	return rc;
}

int timeline_open_series(struct timeline *t, struct recording *r, long device, struct series *s)
{
	struct model survey;
	int rc = moments_survey(r, &survey, NULL);

	if (!rc)
		rc = timeline_open_known(t, r, &survey, device, s);
	model_free(&survey);
	return rc;
}

/* One run; *fits: the device turned out to be that of the framework's first block. */
static int guess(struct timeline *t, struct recording *r, long device, bool *fits)
{
	struct run run = { .timeline = t };
	int rc, wanted;

	*t = (struct timeline){ .recording = r, .framework = true };
	begin(t);
	spans_guess(&t->spans, &t->model, &t->stacks);
	rc = recording_run(r, UINT64_MAX, event, &run);
	model_settle(&t->model);
	if (!rc)
		rc = moments_device(r, &t->model, device, &wanted);
	*fits = !rc && spans_fit(&t->spans, wanted);
	t->device = rc ? 0 : wanted;
	steps_find(&t->steps, &t->spans);
	return rc;
}

int timeline_open(struct timeline *t, struct recording *r, long device)
{
	bool fits;
	int rc = guess(t, r, device, &fits);

	if (!rc && fits)
		return 0;
	timeline_close(t);
	return rc ? rc : timeline_open_series(t, r, device, NULL);
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
