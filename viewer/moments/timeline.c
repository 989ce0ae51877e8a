/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline.h"

#include "moments.h"

static void begin(struct timeline *t)
{
	const struct defs *defs = &t->recording->defs;

	model_init(&t->model, defs);
	stacks_init(&t->stacks, defs, symbols_new(defs));
	owners_init(&t->owners, &t->stacks);
}

static void begin_device(struct timeline *t, struct recording *r, int device, bool framework)
{
	*t = (struct timeline){ .recording = r, .device = device, .framework = framework };
	begin(t);
	spans_init(&t->spans, &t->model, device, framework, &t->stacks);
}

void timeline_begin(struct timeline *t, struct recording *r, const struct model *facts)
{
	begin_device(t, r, t->device, facts->devices[t->device].framework);
}

void timeline_event(struct timeline *t, const struct gmt_event *e)
{
	model_event(&t->model, e);
	spans_event(&t->spans, e);
}

static int event(void *ctx, const struct gmt_event *e)
{
	timeline_event(ctx, e);
	return 0;
}

static int read_all(struct timeline *t)
{
	int rc = recording_run(t->recording, UINT64_MAX, event, t);

	model_settle(&t->model);
	steps_find(&t->steps, &t->spans);
	return rc;
}

static int open_device(struct timeline *t, struct recording *r, int device, bool framework)
{
	int rc;

	begin_device(t, r, device, framework);
	rc = read_all(t);
	if (rc)
		timeline_close(t);
	return rc;
}

int timeline_open_device(struct timeline *t, struct recording *r, const struct model *facts,
			 int device)
{
	return open_device(t, r, device, facts->devices[device].framework);
}

/* One run; the device may turn out to be that of the framework's first block. */
static int guess(struct timeline *t, struct recording *r)
{
	int rc;

	*t = (struct timeline){ .recording = r, .framework = true };
	begin(t);
	spans_guess(&t->spans, &t->model, &t->stacks);
	rc = read_all(t);
	if (rc)
		timeline_close(t);
	return rc;
}

static int settle_on(struct timeline *t, int device)
{
	struct recording *r = t->recording;
	bool framework = t->model.devices[device].framework;

	t->device = device;
	if (spans_fit(&t->spans, device))
		return 0;
	timeline_close(t);
	return open_device(t, r, device, framework);
}

int timeline_open(struct timeline *t, struct recording *r, long device)
{
	int rc = guess(t, r), wanted;

	if (rc)
		return rc;
	rc = moments_device(r, &t->model, device, &wanted);
	if (rc)
		timeline_close(t);
	return rc ? rc : settle_on(t, wanted);
}

int timeline_open_any(struct timeline *t, struct recording *r)
{
	int rc = guess(t, r);

	if (rc)
		return rc;
	t->device = model_main_device(&t->model);
	return t->device < 0 ? 0 : settle_on(t, t->device);
}

void timeline_series(struct timeline *t, const struct series_sink *sink, const uint64_t *moments,
		     size_t count)
{
	struct series s = {
		.model = &t->model, .device = t->device, .moments = moments, .moment_count = count
	};

	s.classifier = classifier_new(&t->model, &t->owners);
	series_run(&s, sink);
	classifier_free(s.classifier);
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
