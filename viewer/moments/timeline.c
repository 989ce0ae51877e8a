/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline.h"

#include "../classes/study.h"

static void begin_names(struct timeline *t, struct recording *r)
{
	*t = (struct timeline){ .recording = r };
	owners_open(&t->owners, &t->stacks, &r->defs);
}

void timeline_begin(struct timeline *t, struct recording *r)
{
	begin_names(t, r);
	model_init(&t->model, &r->defs);
	study_begin(&t->model);
}

void timeline_rename(struct timeline *t)
{
	owners_close(&t->owners);
	owners_open(&t->owners, &t->stacks, &t->recording->defs);
}

void timeline_look(struct timeline *t, int device)
{
	t->device = device;
	t->framework = t->model.devices[device].framework;
	model_measure_spans(&t->model, device);
	steps_free(&t->steps);
	steps_find(&t->steps, &t->model.spans, &t->stacks);
}

static int read_events(struct timeline *t, struct recording *r, struct moment_query *q)
{
	int rc;

	begin_names(t, r);
	rc = moments_read(r, &t->model, q);
	if (rc)
		timeline_close(t);
	return rc;
}

int timeline_open_at(struct timeline *t, struct recording *r, long device, struct moment_query *q)
{
	int rc = read_events(t, r, q), wanted;

	if (rc)
		return rc;
	rc = moments_device(r, &t->model, device, &wanted);
	if (rc)
		timeline_close(t);
	else
		timeline_look(t, wanted);
	return rc;
}

int timeline_open(struct timeline *t, struct recording *r, long device)
{
	return timeline_open_at(t, r, device, NULL);
}

int timeline_open_any(struct timeline *t, struct recording *r)
{
	int rc = read_events(t, r, NULL), device = rc ? -1 : model_main_device(&t->model);

	if (device >= 0)
		timeline_look(t, device);
	t->device = device;
	return rc;
}

void timeline_series(struct timeline *t, const struct series_sink *sink, const uint64_t *moments,
		     size_t count)
{
	struct series s = {
		.model = &t->model, .device = t->device, .moments = moments, .moment_count = count
	};
	struct repeats same = { 0 };

	if (!count)
		repeats_find(&same, &t->model.lives, &t->steps);
	s.same = &same;
	s.classifier = classifier_new(&t->model, &t->owners);
	series_run(&s, sink);
	classifier_free(s.classifier);
	repeats_free(&same);
}

void timeline_close(struct timeline *t)
{
	steps_free(&t->steps);
	owners_close(&t->owners);
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
