/* SPDX-License-Identifier: Apache-2.0 */
/* steps: the training steps and their phases, with the peak of each and the bytes that stay after
 * it. */
#include "../answers/parts.h"
#include "../recording/owner_words.h"
#include "command.h"

#define WHAT 22 /* columns for the operator at the peak */

struct steps_view {
	struct timeline *timeline;
	bool lines;	   /* text: up to `most` steps, 0 = all */
	size_t most, best; /* best: the highest one */
	struct instant at, of_step;
	char words[48];
};

/* Whether a step is printed: of many the first and last most/2, and the highest. */
static bool is_step_shown(const struct steps_view *v, size_t i)
{
	size_t last = v->timeline->steps.count - 1;

	return !v->most || last <= v->most || i <= (v->most + 1) / 2 || i == v->best ||
	       i + v->most / 2 > last;
}

/* A row for the steps that are left out before a shown one. */
static bool gap_row(struct steps_view *v, size_t n, struct row_steps_row *row)
{
	size_t hidden = 0;

	if (!v->lines || !is_step_shown(v, n))
		return false;
	while (hidden < n && !is_step_shown(v, n - hidden - 1))
		hidden++;
	snprintf(v->words, sizeof(v->words), "... %s", MANY(hidden, "step"));
	*row = (struct row_steps_row){ .words = v->words };
	return hidden;
}

/* Shortens an instant to its operator, if it has one. The line stands in the title. */
static void brief(struct instant *at)
{
	char text[sizeof(at->what)];

	instant_cut_line(at);
	words_of_place(at->what, text, sizeof(text), WHAT);
	memcpy(at->what, text, sizeof(text));
}

static const char *step_words(struct steps_view *v, size_t n, bool tail)
{
	const struct steps *s = &v->timeline->steps;

	if (tail || !n)
		return tail ? "after them" : steps_number(s) ? "before them" : "the whole run";
	snprintf(v->words, sizeof(v->words), "step %zu%s", n,
		 s->items[n].ended ? "" : " (not ended)");
	return v->words;
}

static const char *phase_words(struct steps_view *v, int p, unsigned times)
{
	if (times > 1)
		snprintf(v->words, sizeof(v->words), "  %s x %u", phases[p].text, times);
	else
		snprintf(v->words, sizeof(v->words), "  %s", phases[p].text);
	return v->words;
}

/* One row per step, and one per phase of a step. */
static bool step_or_phase_row(void *ctx, size_t i, struct row_steps_row *row)
{
	struct steps_view *view = ctx;
	struct timeline *v = view->timeline;
	size_t n = i / (PHASES + 2), k = i % (PHASES + 2);
	const struct step *step = &v->steps.items[n];
	bool tail = v->steps.tail && n == v->steps.count - 1, real = n && !tail;
	int p = (int)k - 2; /* -1: the whole step */
	struct step_phase phase = { step->extent, 1 };
	const struct extent *x = &phase.extent;

	if (!k)
		return gap_row(view, n, row);
	if ((p >= 0 && (!real || !step_has(step, p))) || (view->lines && !is_step_shown(view, n)))
		return false;
	if (p >= 0)
		phase = steps_phase(&v->model.spans, step, p);
	instant_of_peak(&view->at, v, x);
	if (p < 0) {
		view->of_step = view->at;
		brief(&view->of_step);
	}
	*row = (struct row_steps_row){
		.step = real ? n : 0,
		.phase = p >= 0 ? phases[p].name
			 : real ? "step"
			 : tail ? "after"
				: "setup",
		.times = phase.times,
		.begin_ns = x->first_ns,
		.end_ns = x->last_ns,
		.begin_bytes = x->begin_bytes,
		.peak_bytes = x->peak,
		.peak_ns = x->peak_ns,
		.end_bytes = x->end_bytes,
		.growth_bytes = x->growth,
		.peak_phase = phases[view->at.phase].name,
		.peak_at = view->at.text,
		.ended = step->ended,
		.words = p >= 0 ? phase_words(view, p, phase.times) : step_words(view, n, tail),
		.note = p < 0				? view->of_step.what
			: p == (int)view->of_step.phase ? "<"
							: "",
		.figures = true,
	};
	return true;
}

static void print_step_lines(struct emit *out, const struct row_steps *row,
			     const struct steps_view *view, const struct extent *peak,
			     const struct instant *at)
{
	static const struct text_column columns[] = {
		TEXT_COLUMN("", steps_row_words, 2, -20),
		TEXT_COLUMN("peak", steps_row_peak_bytes, 1, 10, .when = AT_steps_row_figures),
		TEXT_COLUMN("at its end", steps_row_end_bytes, 1, 10, .when = AT_steps_row_figures),
		TEXT_COLUMN("growth", steps_row_growth_bytes, 1, 11, .when = AT_steps_row_figures),
		TEXT_COLUMN("the peak in it", steps_row_note, 2, -1),
	};
	const struct timeline *t = view->timeline;

	emit_peak_title(out, &(struct peak_words){ &t->model, t->device, peak->peak, 0,
						   peak->peak_seq, peak->peak_ns, at });
	emit_line(out, "%s%zu step%s; %s", t->steps.at_least ? "at least " : "",
		  steps_number(&t->steps), steps_number(&t->steps) == 1 ? "" : "s",
		  steps_bases[t->steps.basis].text);
	if (t->steps.at_least)
		emit_line(out, "Part of the run was paused: steps there cannot be counted");
	emit_line(out, "%s", "");
	emit_columns(out, steps_row, &row->rows, columns, 0);
}

int run_steps(const struct steps_options *o, struct emit *out, struct timeline *v)
{
	struct steps_view view = { .timeline = v,
				   .lines = !emit_json(out),
				   .most = o->top > 0 ? (size_t)o->top : 0 };
	const struct extent *peak = timeline_peak(v, &view.best);
	struct row_steps row;
	struct instant at;

	instant_of_peak(&at, v, peak);
	row = (struct row_steps){
		.device = v->device,
		.basis = steps_bases[v->steps.basis].name,
		.steps = steps_number(&v->steps),
		.at_least = v->steps.at_least,
		.peak = { .bytes = peak->peak,
			  .time_ns = peak->peak_ns,
			  .step = at.step,
			  .phase = phases[at.phase].name,
			  .what = at.what,
			  .text = at.text },
		.rows = { v->steps.count * (PHASES + 2), step_or_phase_row, &view },
	};
	emit_document(out, steps, &row);
	if (!emit_json(out))
		print_step_lines(out, &row, &view, peak, &at);
	return 0;
}
