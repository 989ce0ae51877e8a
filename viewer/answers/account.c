/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the memory at the ends of the phases of one steady step, beside published formulas. */
#include "account.h"

#include <math.h>

#include "../base/human.h"
#include "../moments/refusals.h"
#include "../moments/room.h"
#include "flame.h"

/*
 * The published formulas (b batch, s sequence, d width, h heads). A layer keeps about
 * 34 b s d + 5 b h s^2 bytes in 16 bits: 16 tensors of the width and two masks of a byte, and for
 * the attention scores two tensors and a mask. Mixed-precision Adam takes 16 bytes per parameter.
 * The peak is parameters + state + the greater of gradients with the optimizer's temporaries, and
 * activations.
 */

#define NONE -1.0

#define put_note(of, ...)     \
	((of)->row.has_note = \
		 text_put((of)->note, sizeof((of)->note), __VA_ARGS__) && (of)->note[0])

static struct account_row *put_row(struct account *a, const char *section, const char *key,
				   const char *title, enum account_unit unit, double measured,
				   double formula)
{
	static const char *const units[] = { "bytes", "bytes_per_parameter", "count" };
	static struct account_row beyond;
	struct account_row *row = a->count < ACCOUNT_ROWS ? &a->rows[a->count++] : &beyond;

	*row = (struct account_row){ .unit = unit };
	row->row = (struct row_account_row){ .section = section,
					     .key = key,
					     .unit = units[unit],
					     MAYBE_THERE(measured, measured >= 0, measured),
					     MAYBE_THERE(formula, formula >= 0, formula),
					     .note = row->note,
					     .title = title };
	return row;
}

/* Bytes of state per trained parameter. Moments take 4 bytes each. For weights below 32 bits a
 * 32-bit copy is added if the measured state is large enough for one, and moments are as narrow as
 * the weights if it is that small. */
static double state_formula(const struct account *a, double bytes, double measured)
{
	double moments = optimizer_tensors(a->optimizer);

	if (moments < 0)
		return NONE;
	if (bytes < 4 && measured > moments * 4 + 2)
		return moments * 4 + 4;
	if (bytes < 4 && measured < moments * bytes * 1.5)
		return moments * bytes;
	if (!strcmp(a->optimizer, "SGD") && measured < 1)
		return 0;
	return moments * 4;
}

/* Trained share of the parameters, 1 if it is above 0.9 or not known. */
static double trained_share(const struct account *a)
{
	double share = a->shape.exact ? (double)a->shape.trainable / a->shape.exact : 1;

	return share > 0.9 || !a->shape.trainable ? 1 : share;
}

static void shard_row(struct account *a, const struct account_row *sum, double shards)
{
	struct account_row *row =
		put_row(a, "parameters", "whole", "the same, of the whole model's",
			UNIT_PER_PARAMETER, sum->row.measured / shards,
			sum->row.has_formula ? sum->row.formula / shards : NONE);

	put_note(row, "each device holds one of %.0f parts", shards);
}

static void parameter_rows(struct account *a)
{
	double shards = fmax(shape_get(&a->shape, SHAPE_SHARDS), 1), state;
	double n = shape_get(&a->shape, SHAPE_PARAMETERS) / shards, trained = trained_share(a);
	double bytes = shape_get(&a->shape, SHAPE_BYTES);
	const char *s = "parameters";
	struct account_row *row;

	if (n <= 0)
		return;
	state = a->trains ? state_formula(a, bytes, a->state / n / trained) : NONE;
	put_row(a, s, "parameters", "parameters", UNIT_PER_PARAMETER, a->parameters / n, bytes);
	row = put_row(a, s, "gradients", "gradients", UNIT_PER_PARAMETER, a->gradients / n,
		      a->trains ? bytes * trained : NONE);
	if (trained < 1)
		put_note(row, "%.2f %% of the parameters are trained", trained * 100);
	row = put_row(a, s, "optimizer_state", "optimizer state", UNIT_PER_PARAMETER, a->state / n,
		      state < 0 ? NONE : state * trained);
	put_note(row, "%s%s", a->optimizer,
		 state > 8 ? ", with a copy of the parameters in 32 bits" : "");
	row = put_row(a, s, "sum", "together", UNIT_PER_PARAMETER,
		      ((double)a->parameters + a->gradients + a->state) / n,
		      state < 0 ? NONE : bytes + (bytes + state) * trained);
	if (shards > 1)
		shard_row(a, row, shards);
}

static double with(const struct account *a, enum shape_figure f)
{
	return shape_get(&a->shape, f);
}

/* Bytes that so many layers keep. scores: with the tensors of attention scores. */
static double layers_keep(const struct account *a, double layers, bool scores)
{
	double p = with(a, SHAPE_ACTIVATION_BYTES), t = with(a, SHAPE_TOKENS);
	double linear = (16 * p + 2) * t * with(a, SHAPE_WIDTH);
	double square = (2 * p + 1) * t * with(a, SHAPE_HEADS) * with(a, SHAPE_SEQUENCE);

	if (!linear || (scores && !square))
		return NONE;
	return layers * (linear + (scores ? square : 0));
}

/* The ways to keep a layer. Each has a row for one layer and one for all. */
enum { SCORES, FLASH, CHECKPOINTED, WAYS };

static const struct {
	const char *one, *all, *title;
} ways[WAYS] = {
	[SCORES] = { "per_layer", "layers", "  with attention scores kept" },
	[FLASH] = { "per_layer_flash", "layers_flash", "  with flash attention" },
	[CHECKPOINTED] = { "per_layer_checkpointed", "checkpointed", "  checkpointed: its input" },
};

/* Distance of two figures: the larger divided by the smaller. */
static double apart(double a, double b)
{
	return a > 0 && b > 0 ? fmax(a / b, b / a) : 1e9;
}

static void way_rows(struct account *a, double layers, double measured, bool all)
{
	double t = with(a, SHAPE_TOKENS), input = t * with(a, SHAPE_WIDTH);
	double formulas[WAYS] = {
		[SCORES] = layers_keep(a, layers, true),
		[FLASH] = layers_keep(a, layers, false),
		[CHECKPOINTED] = input ? layers * input * with(a, SHAPE_ACTIVATION_BYTES) : NONE,
	};
	struct account_row *nearest = NULL, *row;
	/* flash attention's own sums gave the heads */
	bool flash = a->shape.figures[SHAPE_HEADS].source == FIGURE_INFERRED;

	if (!input)
		return;
	for (int w = 0; w < WAYS; w++) {
		row = put_row(a, "activations", all ? ways[w].all : ways[w].one, ways[w].title,
			      UNIT_BYTES, measured, formulas[w]);
		row->repeats = true;
		if (w == SCORES && formulas[w] < 0 && !all)
			put_note(row, "give %s",
				 with(a, SHAPE_SEQUENCE) ? "--heads" : "--sequence");
		if (row->row.has_formula && (w != SCORES || !flash) &&
		    (!nearest ||
		     apart(measured, row->row.formula) < apart(measured, nearest->row.formula)))
			nearest = row;
	}
	if (formulas[SCORES] < 0 && !flash && nearest && measured > 1.25 * nearest->row.formula)
		nearest = NULL; /* the unknown one might be nearer */
	if (nearest && measured > 0)
		put_note(nearest, "nearest: %.2f x", measured / nearest->row.formula);
}

static void layer_rows(struct account *a)
{
	double layers = with(a, SHAPE_LAYERS), all = a->layer_bytes ? a->layer_bytes : NONE;
	struct account_row *row;

	if (layers < 1 || (all < 0 && !with(a, SHAPE_TOKENS)))
		return;
	row = put_row(a, "activations", "layer", "of one layer", UNIT_BYTES,
		      all < 0 ? NONE : all / layers, NONE);
	put_note(row, "%s%.60s", all < 0 ? "" : "module ",
		 all < 0 ? "no module was found that repeats" : a->layer_class);
	way_rows(a, 1, all < 0 ? NONE : all / layers, false);
	if (layers < 2)
		return;
	put_row(a, "activations", "all_layers", "of all layers", UNIT_BYTES, all, NONE);
	way_rows(a, layers, all, true);
}

static void activation_rows(struct account *a)
{
	double p = with(a, SHAPE_ACTIVATION_BYTES), t = with(a, SHAPE_TOKENS);
	double n = with(a, SHAPE_PARAMETERS);
	struct account_row *row;
	const char *s = "activations";

	row = put_row(a, s, "total", "at the end of forward", UNIT_BYTES, a->activations, NONE);
	if (!with(a, SHAPE_TOKENS) || !with(a, SHAPE_WIDTH))
		put_note(row,
			 "no formula: width, batch and sequence of a transformer are not known");
	layer_rows(a);
	if (t > 0 && p > 0) {
		row = put_row(a, s, "per_token", "elements for each token", UNIT_COUNT,
			      a->activations / t / p, n > 0 ? 4.6894e-4 * n + 1.8494e6 : NONE);
		put_note(row, "the formula counts the outputs of all modules, kept or not");
	}
	if (!a->largest_activation)
		return;
	row = put_row(a, s, "largest", "largest single one", UNIT_BYTES, a->largest_activation,
		      NONE);
	put_note(row, "%.60s %.40s:%u", a->largest_owner.function,
		 owners_base(a->largest_owner.file), a->largest_owner.line);
}

static void peak_rows(struct account *a, struct timeline *t)
{
	double update = (double)a->gradients + a->temporaries;
	bool updates = update > a->activations;
	const char *counts = "the greater: this counts", *s = "peak";
	double sum = (double)a->parameters + a->state + fmax(update, a->activations);
	const struct extent *peak;
	struct account_row *row;
	struct instant at;
	size_t step;

	peak = timeline_peak(t, &step);
	instant_of_peak(&at, t, peak);
	row = put_row(a, s, "peak", "the peak", UNIT_BYTES, peak->peak, a->trains ? sum : NONE);
	put_note(row, "%.127s", at.text);
	if (!a->trains)
		return;
	put_row(a, s, "parameters", "  parameters", UNIT_BYTES, a->parameters, NONE);
	put_row(a, s, "optimizer_state", "  + optimizer state", UNIT_BYTES, a->state, NONE);
	row = put_row(a, s, "update", "  + gradients, temporaries of update", UNIT_BYTES, update,
		      NONE);
	put_note(row, "%s", updates ? counts : "");
	row = put_row(a, s, "activations", "    or activations", UNIT_BYTES, a->activations, NONE);
	put_note(row, "%s", updates ? "" : counts);
	if (!a->optimizer[0])
		return;
	row = put_row(a, s, "optimizer_temporaries", "temporaries of the optimizer", UNIT_BYTES,
		      a->temporaries, a->shape.trainable ? (double)a->shape.trainable : NONE);
	if (row->row.has_formula)
		put_note(row, "formula: at most");
}

static void residual_rows(struct account *a, struct timeline *t, const struct snapshot *peak)
{
	/* Labels where the words of categories.def are too short for this list. */
	static const char *const labels[CATEGORIES] = {
		[CATEGORY_workspace] = "workspaces of libraries",
		[CATEGORY_unknown] = "of unknown class",
	};
	const struct moment *mo = &peak->moment;
	const char *s = "residual";
	struct room room = room_at(&t->model, mo, NULL);
	struct account_row *row;

	put_row(a, s, "temporaries", "temporary buffers", UNIT_BYTES,
		classes_sum(peak->bytes, CLASSES_THAT(ARE_TEMPORARY)), NONE);
	for (unsigned c = 0; c < CATEGORIES; c++)
		if (category_in(c, OTHER_CLASSES))
			put_row(a, s, categories[c].name,
				labels[c] ? labels[c] : categories[c].words, UNIT_BYTES,
				peak->bytes[c], NONE);
	if (t->framework) {
		row = put_row(a, s, "cached_unused", "cached, not in use", UNIT_BYTES, room.cached,
			      NONE);
		if (room.cached)
			put_note(row, "largest hole %s", B(room.hole));
	}
	put_row(a, s, "context", "context, modules, others", UNIT_BYTES, mo->context, NONE);
}

/* Free memory when a request ran out of memory, and why it was not enough. */
static void oom_rows(struct account *a, struct timeline *t, const struct snapshot *oom)
{
	const struct model_device *d = &t->model.devices[t->device];
	struct room room = room_at(&t->model, &oom->moment, NULL);
	double outside = room.free, hole = room.hole;
	double available = room.cached + outside, asked = d->oom_asked;
	const char *s = "out_of_memory";
	struct account_row *row;

	row = put_row(a, s, "asked", "the requested tensor", UNIT_BYTES, asked, NONE);
	if (available >= asked && hole < asked && outside < asked)
		put_note(row, "enough was free, but not in one piece: see oom");
	row = put_row(a, s, "free", "free: cached without use, outside", UNIT_BYTES, available,
		      NONE);
	if (room.total)
		put_note(row, "%.0f %% of the device", 100 * available / room.total);
	put_row(a, s, "largest_hole", "the largest piece of it in the cache", UNIT_BYTES, hole,
		NONE);
	put_row(a, s, "outside", "free outside of the cache", UNIT_BYTES, outside, NONE);
}

/* The last step that ended and has both passes, because all state exists by then. If there is none,
 * the last step with a forward pass, or 0. */
static size_t steady_step(const struct timeline *t)
{
	size_t last = steps_number(&t->steps), forward = 0;

	for (size_t i = last; i > 0; i--) {
		const struct step *s = &t->steps.items[i];

		if (s->ended && step_has(s, PHASE_FORWARD) && step_has(s, PHASE_BACKWARD))
			return i;
		if (step_has(s, PHASE_FORWARD) && !forward)
			forward = i;
	}
	return forward;
}

/* The step's last span of that phase, NULL = none. */
static const struct span *span_of(const struct timeline *t, const struct step *step,
				  enum phase phase)
{
	const struct span *found = NULL;

	for (size_t i = step->first; i <= step->last && i < t->model.spans.count; i++)
		if (t->model.spans.items[i].phase == phase)
			found = &t->model.spans.items[i];
	return found;
}

/* True if the module seems to be called once for each layer: it has that many blocks of each child,
 * or one less, since the first or last layer might differ. */
static bool is_repeated(const struct flame *m, const struct flame_node *x, uint64_t layers)
{
	for (uint32_t i = x->first; i; i = m->nodes[i].next)
		if (m->nodes[i].blocks + 1 < layers)
			return false;
	return x->first;
}

/* Finds the module that is the layer: the largest of those that are repeated, and in it the
 * innermost that still has four fifths of its bytes. */
static void layer_bytes(struct account *a, struct timeline *t, const struct snapshot *s,
			int category)
{
	uint64_t layers = shape_get(&a->shape, SHAPE_LAYERS), most = 0;
	struct flame m;

	if (layers < 2)
		return;
	flame_build(&m, s, &t->owners,
		    &(struct flame_how){ .modules = true, .places = true, .category = category });
	for (size_t i = 1; i < m.count; i++) {
		const struct flame_node *x = &m.nodes[i];

		if (x->line || !is_repeated(&m, x, layers) || x->bytes * 5 < most * 4)
			continue;
		most = x->bytes > most ? x->bytes : most;
		a->layer_bytes = x->bytes;
		snprintf(a->layer_class, sizeof(a->layer_class), "%.60s", x->name);
	}
	flame_free(&m);
}

static void look_at_activations(struct account *a, struct timeline *t, const struct snapshot *s)
{
	int category = CATEGORY_activations;
	const struct block *largest = LARGEST_OF(b, &s->moment, b->category == category);

	a->activations = snapshot_bytes(s, "activations");
	if (largest) {
		a->largest_activation = largest->size;
		a->largest_owner = owners_find(&t->owners, largest);
	}
	layer_bytes(a, t, s, category);
}

static void look_at_update(struct account *a, const struct snapshot *s, const struct extent *x)
{
	uint64_t stays = x->begin_bytes + (x->growth > 0 ? x->growth : 0);

	a->parameters = snapshot_bytes(s, "parameters");
	a->state = snapshot_bytes(s, "optimizer_state");
	a->temporaries = x->peak > stays ? x->peak - stays : 0;
}

/* Looks at the end of each phase; the one after the optimizer's step has no gathered shards. */
static void measure_step(struct account *a, struct timeline *t, const struct step *step,
			 const double given[SHAPE_FIGURES])
{
	const struct span *forward = span_of(t, step, PHASE_FORWARD);
	const struct span *backward = span_of(t, step, PHASE_BACKWARD);
	const struct span *update = span_of(t, step, PHASE_OPTIMIZER);
	struct snapshot rest, s;

	if (update) {
		snapshot_take(&rest, t, update->extent.last_seq);
		look_at_update(a, &rest, &update->extent);
	}
	if (forward) {
		snapshot_take(&s, t, forward->extent.last_seq);
		if (!a->parameters)
			a->parameters = snapshot_bytes(&s, "parameters");
		shape_find(&a->shape, step, &forward->extent, &s, update ? &rest : &s, a->state,
			   given);
		look_at_activations(a, t, &s);
		moment_free(&s.moment);
	}
	if (backward) {
		snapshot_take(&s, t, backward->extent.last_seq);
		a->gradients = snapshot_bytes(&s, "gradients");
		moment_free(&s.moment);
	}
	if (update)
		moment_free(&rest.moment);
}

static void add_rows(struct account *a, struct timeline *t)
{
	struct snapshot s;
	struct refusal refusal;
	size_t step;

	snapshot_take(&s, t, timeline_peak(t, &step)->peak_seq);
	if (!a->parameters)
		a->parameters = snapshot_bytes(&s, "parameters");
	parameter_rows(a);
	if (a->step)
		activation_rows(a);
	peak_rows(a, t);
	residual_rows(a, t, &s);
	moment_free(&s.moment);
	if (!refusals_find(&refusal, &t->model.lives, 0) || refusal.event.device != t->device)
		return;
	snapshot_take(&s, t, refusal.event.seq);
	oom_rows(a, t, &s);
	moment_free(&s.moment);
}

void account_make(struct account *out, struct timeline *t, const double given[SHAPE_FIGURES])
{
	const struct step *step;

	*out = (struct account){ .step = steady_step(t) };
	step = &t->steps.items[out->step];
	out->trains = step_has(step, PHASE_BACKWARD) || step_has(step, PHASE_OPTIMIZER);
	if (step_has(step, PHASE_OPTIMIZER))
		optimizer_of_spans(&t->model.spans, step->last, t->model.defs, out->optimizer);
	measure_step(out, t, step, given);
	add_rows(out, t);
}
