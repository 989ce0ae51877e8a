/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline.h"

#include "../classes/study.h"
#include "../model/optimizers.h"
#include "../recording/owner_words.h"

void timeline_open_names(struct timeline *t, struct recording *r)
{
	*t = (struct timeline){ .recording = r };
	owners_open(&t->owners, &t->stacks, &r->defs);
}

void timeline_begin(struct timeline *t, struct recording *r)
{
	timeline_open_names(t, r);
	model_init(&t->model, &r->defs);
	study_begin(&t->model);
}

void timeline_close_names(struct timeline *t)
{
	if (t->classifier)
		classifier_free(t->classifier);
	t->classifier = NULL;
	owners_close(&t->owners);
}

void timeline_rename(struct timeline *t)
{
	timeline_close_names(t);
	owners_open(&t->owners, &t->stacks, &t->recording->defs);
}

struct classifier *timeline_classifier(struct timeline *t)
{
	if (!t->classifier)
		t->classifier = classifier_new(&t->model, &t->owners);
	return t->classifier;
}

void timeline_look(struct timeline *t, int device)
{
	t->device = device;
	t->framework = t->model.devices[device].framework;
	model_measure_spans(&t->model, device);
	steps_free(&t->steps);
	steps_find(&t->steps, &t->model.spans, &t->stacks);
}

int timeline_read(struct timeline *t, struct recording *r, struct moment_query *q)
{
	int rc;

	timeline_open_names(t, r);
	rc = moments_read(r, &t->model, q);
	if (rc)
		timeline_close(t);
	return rc;
}

int timeline_open_at(struct timeline *t, struct recording *r, long device, struct moment_query *q)
{
	int rc = timeline_read(t, r, q), wanted;

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
	int rc = timeline_read(t, r, NULL), device = rc ? -1 : model_main_device(&t->model);

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
	s.classifier = timeline_classifier(t);
	series_run(&s, sink);
	repeats_free(&same);
}

void timeline_close(struct timeline *t)
{
	steps_free(&t->steps);
	timeline_close_names(t);
	model_free(&t->model);
}

const char *timeline_class_words(const struct timeline *t, unsigned category, const struct block *b,
				 uint64_t seq)
{
	bool kept = t->steps.count && steps_at(&t->steps, b->seq) < steps_at(&t->steps, seq);

	return kept ? category_kept_words(category) : categories[category].words;
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

#define OPS "at::_ops::"

/* The operator that the program called: the outermost one below Python. */
void instant_operator(struct stacks *s, uint32_t stack, uint64_t seq, char *buf, size_t room)
{
	buf[0] = 0;
	stacks_read_names(s, stack, seq);
	for (size_t i = 0; i < s->count && !s->frames[i].python; i++) {
		const char *f = s->frames[i].function, *end;

		if (strncmp(f, OPS, sizeof(OPS) - 1))
			continue;
		f += sizeof(OPS) - 1;
		end = strstr(f, "::");
		if (end)
			snprintf(buf, room, "%.*s", (int)(end - f), f);
	}
}

static const char *optimizer_at(struct stacks *s, const struct span *span, const struct extent *x,
				char buf[OPTIMIZER_NAME])
{
	const char *name = defs_string(s->defs, span->name).s;
	bool range = strchr(name, '#');

	if (!range)
		stacks_read_python(s, x->peak_stack);
	for (size_t i = 0; !range && i < s->count; i++)
		if (strstr(s->frames[i].file, "/torch/optim/") &&
		    strstr(s->frames[i].function, ".step"))
			name = s->frames[i].function;
	return optimizer_name(name, buf);
}

static void line_text(const struct owner *o, char *buf, size_t room)
{
	char place[OWNER_WORDS], name[256];
	const char *function = owner_name(o, name, sizeof(name));

	if (o->file[0] && o->line)
		snprintf(buf, room, "%.100s %s", function, owner_place(o, place, sizeof(place), 0));
	else
		snprintf(buf, room, "%.200s", function);
}

static void what_of(struct instant *out, const struct span *span, const struct extent *x,
		    struct owners *owners)
{
	struct block b = { .stack = x->peak_stack, .name = x->peak_node, .seq = x->peak_seq };
	struct owner o = owners_find(owners, &b);
	char first[OPTIMIZER_NAME], op[100], line[OWNER_WORDS];

	line_text(&o, line, sizeof(line));
	instant_operator(owners->stacks, x->peak_stack, x->peak_seq, op, sizeof(op));
	if (out->phase == PHASE_OPTIMIZER) {
		optimizer_at(owners->stacks, span, x, first);
		snprintf(out->what, sizeof(out->what), "%s%s%s", first,
			 first[0] && op[0] ? " " : "", op);
	} else if (o.backward || !op[0]) {
		snprintf(out->what, sizeof(out->what), "%s", line);
	} else if (!line[0]) {
		snprintf(out->what, sizeof(out->what), "%s", op);
	} else {
		snprintf(out->what, sizeof(out->what), "%s (%.460s)", op, line);
		out->line = strlen(out->what) - strlen(op);
	}
}

void instant_cut_line(struct instant *at)
{
	at->what[strlen(at->what) - at->line] = 0;
	at->text[strlen(at->text) - at->line] = 0;
	at->line = 0;
}

const char *instant_phrase(const struct instant *at, char *buf, size_t room)
{
	snprintf(buf, room, "%s%s", at->with ? at->with : "", at->text);
	return buf;
}

const char *instant_line(const struct instant *at, char *buf, size_t room)
{
	instant_phrase(at, buf, room);
	buf[0] = (char)toupper((unsigned char)buf[0]);
	return buf;
}

void instant_of_peak(struct instant *out, const struct timeline *t, const struct extent *x)
{
	const struct steps *steps = &t->steps;
	const struct span *span = steps_span(steps, &t->model.spans, x->peak_seq);
	char head[64] = "";

	*out = (struct instant){ .step = steps_at(steps, x->peak_seq) };
	if (!span)
		return;
	out->phase = span->phase;
	what_of(out, span, x, (struct owners *)&t->owners);
	if (steps->tail && out->step == steps->count - 1) {
		snprintf(head, sizeof(head), "after the last step");
		out->step = 0;
	} else if (out->step) {
		snprintf(head, sizeof(head), "step %zu, %s", out->step, phases[out->phase].text);
		out->with = "in ";
	} else if (steps->count > 1) {
		snprintf(head, sizeof(head), "before the first step");
	} else if (out->what[0]) {
		out->with = "at ";
	}
	snprintf(out->text, sizeof(out->text), "%s%s%s", head, head[0] && out->what[0] ? ", " : "",
		 out->what);
}

void instant_of_highest(struct instant *out, const struct timeline *t)
{
	size_t step;

	instant_of_peak(out, t, timeline_peak(t, &step));
}
