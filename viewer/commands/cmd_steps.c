/* SPDX-License-Identifier: Apache-2.0 */
/* steps: the training steps, the phases in each, how high each came and what stayed after it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../base/human.h"
#include "../documents/document.h"
#include "../moments/moments.h"
#include "../moments/timeline.h"
#include "../stacks/owner_words.h"
#include "command.h"

#define WHAT 22 /* columns for what the peak was for */

struct steps_options {
	const char *file;
	long device, top;
};

struct view {
	struct timeline *timeline;
	struct instant at; /* of the row that is being written */
};

/* A step is a row, and each phase that it has is one. */
static bool step_row(void *ctx, size_t i, struct row_steps_row *row)
{
	struct view *view = ctx;
	struct timeline *v = view->timeline;
	size_t n = i / (PHASES + 1), p = i % (PHASES + 1);
	const struct step *step = &v->steps.items[n];
	bool tail = v->steps.tail && n == v->steps.count - 1, real = n && !tail;
	const struct extent *x = p ? &step->phases[p - 1] : &step->extent;

	if (p && (!real || !step->times[p - 1]))
		return false;
	instant_of_peak(&view->at, &v->steps, &v->model.spans, x, &v->owners);
	*row = (struct row_steps_row){
		.step = real ? n : 0,
		.phase = p	? phase_name((int)p - 1)
			 : real ? "step"
			 : tail ? "after"
				: "setup",
		.times = p ? step->times[p - 1] : 1,
		.begin_ns = x->first_ns,
		.end_ns = x->last_ns,
		.begin_bytes = x->begin_bytes,
		.peak_bytes = x->peak,
		.peak_ns = x->peak_ns,
		.end_bytes = x->end_bytes,
		.growth_bytes = x->growth,
		.peak_phase = phase_name(view->at.phase),
		.peak_at = view->at.text,
	};
	return true;
}

static void document(struct emit *out, struct timeline *v)
{
	size_t step;
	const struct extent *peak = timeline_peak(v, &step);
	struct view view = { .timeline = v };
	struct row_steps row;
	struct instant at;

	instant_of_peak(&at, &v->steps, &v->model.spans, peak, &v->owners);
	row = (struct row_steps){
		.device = v->device,
		.basis = steps_basis_name(v->steps.basis),
		.steps = steps_number(&v->steps),
		.peak = { .bytes = peak->peak,
			  .time_ns = peak->peak_ns,
			  .step = at.step,
			  .phase = phase_name(at.phase),
			  .what = at.what,
			  .text = at.text },
		.rows = { v->steps.count * (PHASES + 1), step_row, &view },
	};
	emit_document(out, steps, &row);
}

static const char *growth_text(char buf[HUMAN_MAX], int64_t growth)
{
	char b[HUMAN_MAX];

	if (!growth)
		return "0";
	human_bytes(b, growth > 0 ? growth : -growth);
	snprintf(buf, HUMAN_MAX, "%c%.20s", growth > 0 ? '+' : '-', b);
	return buf;
}

static void text_row(struct emit *out, const char *what, const struct extent *x, const char *note)
{
	char p[HUMAN_MAX], e[HUMAN_MAX], g[HUMAN_MAX];

	emit_line(out, "  %-20s %10s %10s %11s  %s", what, human_bytes(p, x->peak),
		  human_bytes(e, x->end_bytes), growth_text(g, x->growth), note);
}

/* The operator alone, where that says enough: the line stands in the title. */
static void brief(struct instant *at)
{
	char *line = strstr(at->what, " ("), text[sizeof(at->what)];

	if (line && strcmp(line, " (backward)"))
		*line = 0;
	words_of_place(at->what, text, sizeof(text), WHAT);
	memcpy(at->what, text, sizeof(text));
}

static void text_step(struct emit *out, struct timeline *v, size_t n)
{
	const struct step *step = &v->steps.items[n];
	bool tail = v->steps.tail && n == v->steps.count - 1;
	struct instant at;
	char what[48];

	instant_of_peak(&at, &v->steps, &v->model.spans, &step->extent, &v->owners);
	brief(&at);
	if (n && !tail)
		snprintf(what, sizeof(what), "step %zu%s", n, step->ended ? "" : " (not ended)");
	else
		snprintf(what, sizeof(what), "%s",
			 tail			   ? "after them"
			 : steps_number(&v->steps) ? "before them"
						   : "the whole run");
	text_row(out, what, &step->extent, at.what);
	for (int p = 0; n && !tail && p < PHASES; p++) {
		if (!step->times[p])
			continue;
		if (step->times[p] > 1)
			snprintf(what, sizeof(what), "  %s x %u", phase_text(p), step->times[p]);
		else
			snprintf(what, sizeof(what), "  %s", phase_text(p));
		text_row(out, what, &step->phases[p], (enum phase)p == at.phase ? "<" : "");
	}
}

/* Of many steps: the first two, the highest, the last. */
static bool is_shown(const struct steps *steps, size_t i, size_t most, size_t best)
{
	return !most || steps->count - 1 <= most || i <= (most + 1) / 2 || i == best ||
	       i + most / 2 > steps->count - 1;
}

static void text(struct emit *out, struct timeline *v, long top)
{
	size_t best, hidden = 0;
	const struct extent *peak = timeline_peak(v, &best);
	char b[HUMAN_MAX], t[MOMENTS_WHEN], line[INSTANT_MAX + 8];
	struct instant at;

	instant_of_peak(&at, &v->steps, &v->model.spans, peak, &v->owners);
	emit_title(out, "Device %d: %s%s%s", v->device,
		   moments_state_only(&v->model) ? "" : "peak ", human_bytes(b, peak->peak),
		   moments_when(&v->model, peak->peak_seq, peak->peak_ns, t, sizeof(t)));
	if (at.text[0] && peak->peak_seq > v->model.state_seq)
		emit_title(out, "%s", instant_line(at.text, line, sizeof(line)));
	emit_line(out, "%zu step%s; %s", steps_number(&v->steps),
		  steps_number(&v->steps) == 1 ? "" : "s", steps_basis_text(v->steps.basis));
	emit_line(out, "%s", "");
	emit_title(out, "  %-20s %10s %10s %11s  %s", "", "peak", "at its end", "growth",
		   "the peak in it");
	for (size_t i = 0; i < v->steps.count; i++) {
		if (!is_shown(&v->steps, i, top > 0 ? top : 0, best)) {
			hidden++;
			continue;
		}
		if (hidden)
			emit_line(out, "  ... %zu steps", hidden);
		hidden = 0;
		text_step(out, v, i);
	}
}

static int answer(const void *options, struct emit *out, struct recording *r)
{
	const struct steps_options *o = options;
	struct timeline t = { 0 };
	int rc = timeline_open(&t, r, o->device);

	if (rc)
		return rc;
	document(out, &t);
	text(out, &t, o->top);
	timeline_close(&t);
	return 0;
}

static const struct option_row options[] = {
	OPTION_DEVICE(struct steps_options),
	OPTION_TOP(struct steps_options, "steps to show", 8),
	{ 0 },
};

const struct command command_steps = {
	.name = "steps",
	.summary = "the training steps, and the peak of each of their phases",
	.text = "Finds the training steps and prints for each, and for its forward, backward and "
		"optimizer: the peak, what was still allocated at the end, and the growth. JSON "
		"has every step.",
	.options = options,
	.answer = answer,
	COMMAND_FILE(struct steps_options, OPERAND_RUN, COMMAND_ROWS),
};
