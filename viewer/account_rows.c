/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The formulas, as published (b batch, s sequence, d width, h heads, L layers, N parameters, P
 * bytes of an element): a block keeps about 34 b s d + 5 b h s^2 bytes in 16 bits, that is 16
 * tensors of the width, two masks of a byte, and for the scores two tensors and a mask;
 * mixed-precision Adam takes 16 bytes a parameter; the peak is parameters + state + the greater of
 * gradients with the optimizer's temporaries, and activations.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "account.h"
#include "holders.h"
#include "human.h"

#define NONE -1.0

static struct account_row *add(struct account *a, const char *section, const char *key,
			       const char *title, enum account_unit unit, double measured,
			       double formula)
{
	static struct account_row beyond;
	struct account_row *row = a->count < ACCOUNT_ROWS ? &a->rows[a->count++] : &beyond;

	*row = (struct account_row){ .section = section,
				     .key = key,
				     .title = title,
				     .unit = unit,
				     .has_measured = measured >= 0,
				     .has_formula = formula >= 0,
				     .measured = measured,
				     .formula = formula };
	return row;
}

/* Tensors of the parameters' shape that an optimizer keeps, by a part of its name. */
static double moments_of(const char *optimizer)
{
	static const struct {
		const char *part;
		double moments;
	} known[] = { { "8bit", NONE }, { "Adamax", 2 },  { "Adam", 2 }, { "Adadelta", 2 },
		      { "Adagrad", 1 }, { "RMSprop", 1 }, { "Lion", 1 }, { "SGD", 1 } };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strstr(optimizer, known[i].part))
			return known[i].moments;
	return NONE;
}

/* Bytes of state for each trained parameter: moments of 4 bytes, with 16-bit weights a 32-bit copy
 * too where the measured state is large enough for one; moments of 2 bytes if it is that small. */
static double state_formula(const struct account *a, double bytes, double measured)
{
	double moments = moments_of(a->optimizer);

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

static void parameter_rows(struct account *a)
{
	double n = shape_get(&a->shape, SHAPE_PARAMETERS),
	       bytes = shape_get(&a->shape, SHAPE_BYTES);
	double trained = a->parameters ? (double)a->shape.trainable / a->parameters : 1, state, sum;
	struct account_row *row;

	if (n <= 0)
		return;
	trained = trained > 0.9 || !a->shape.trainable ? 1 : trained;
	state = state_formula(a, bytes, a->state / n / trained);
	add(a, "parameters", "parameters", "parameters", UNIT_PER_PARAMETER, a->parameters / n,
	    bytes);
	row = add(a, "parameters", "gradients", "gradients", UNIT_PER_PARAMETER, a->gradients / n,
		  bytes * trained);
	if (trained < 1)
		snprintf(row->note, sizeof(row->note), "%.2f %% of the parameters are trained",
			 trained * 100);
	row = add(a, "parameters", "optimizer_state", "optimizer state", UNIT_PER_PARAMETER,
		  a->state / n, state < 0 ? NONE : state * trained);
	snprintf(row->note, sizeof(row->note), "%s%s", a->optimizer,
		 state > 8 ? ", with a copy of the parameters in 32 bits" : "");
	sum = ((double)a->parameters + a->gradients + a->state) / n;
	add(a, "parameters", "sum", "together", UNIT_PER_PARAMETER, sum,
	    state < 0 ? NONE : bytes + (bytes + state) * trained);
}

static double with(const struct account *a, enum shape_figure f)
{
	return shape_get(&a->shape, f);
}

/* What L layers keep: scores = with the tensors of attention scores. */
static double layers_keep(const struct account *a, double layers, bool scores)
{
	double p = with(a, SHAPE_ACTIVATION_BYTES), t = with(a, SHAPE_TOKENS);
	double linear = (16 * p + 2) * t * with(a, SHAPE_WIDTH);
	double square = (2 * p + 1) * t * with(a, SHAPE_HEADS) * with(a, SHAPE_SEQUENCE);

	if (!linear || (scores && !square))
		return NONE;
	return layers * (linear + (scores ? square : 0));
}

static void activation_rows(struct account *a)
{
	double p = with(a, SHAPE_ACTIVATION_BYTES), t = with(a, SHAPE_TOKENS);
	double layers = with(a, SHAPE_LAYERS), all = a->activations, n = with(a, SHAPE_PARAMETERS);
	double inputs = layers && t ? layers * t * with(a, SHAPE_WIDTH) * p : NONE;
	double each = layers && a->layer_bytes ? a->layer_bytes / layers : NONE;
	struct account_row *row;
	const char *s = "activations";

	add(a, s, "total", "at the end of forward", UNIT_BYTES, all, NONE);
	if (layers > 0) {
		row = add(a, s, "per_layer", "for each layer, attention scores kept", UNIT_BYTES,
			  each, layers_keep(a, 1, true));
		if (row->has_measured)
			snprintf(row->note, sizeof(row->note), "measured: %.60s", a->layer_class);
		if (!row->has_formula)
			snprintf(row->note, sizeof(row->note),
				 "the formula needs --heads and --sequence");
		add(a, s, "per_layer_flash", "for each layer, flash attention", UNIT_BYTES, each,
		    layers_keep(a, 1, false));
		add(a, s, "layers", "all layers, attention scores kept", UNIT_BYTES,
		    a->layer_bytes ? a->layer_bytes : NONE, layers_keep(a, layers, true));
		add(a, s, "layers_flash", "all layers, flash attention", UNIT_BYTES,
		    a->layer_bytes ? a->layer_bytes : NONE, layers_keep(a, layers, false));
		add(a, s, "checkpointed", "all layers, checkpointed: inputs only", UNIT_BYTES,
		    a->layer_bytes ? a->layer_bytes : NONE, inputs);
	}
	if (t > 0 && p > 0) {
		row = add(a, s, "per_token", "elements for each token", UNIT_COUNT, all / t / p,
			  n > 0 ? 4.6894e-4 * n + 1.8494e6 : NONE);
		snprintf(row->note, sizeof(row->note),
			 "the formula counts all modules' outputs, kept or not");
	}
	row = add(a, s, "largest", "largest single one", UNIT_BYTES, a->largest_activation, NONE);
	if (a->largest_activation)
		snprintf(row->note, sizeof(row->note), "%.40s %.30s:%u", a->largest_owner.function,
			 owners_base(a->largest_owner.file), a->largest_owner.line);
}

static double greater(double a, double b)
{
	return a > b ? a : b;
}

static void peak_rows(struct account *a, struct timeline *t)
{
	double update = (double)a->gradients + a->temporaries, n = with(a, SHAPE_PARAMETERS);
	size_t step;
	const struct extent *peak = timeline_peak(t, &step);
	double sum = (double)a->parameters + a->state + greater(update, a->activations);
	struct account_row *row;
	struct instant at;

	instant_of_peak(&at, &t->steps, &t->spans, peak, &t->owners);
	row = add(a, "peak", "peak", "the peak", UNIT_BYTES, peak->peak, a->step ? sum : NONE);
	snprintf(row->note, sizeof(row->note), "%.95s", at.text);
	if (!a->step)
		return;
	add(a, "peak", "parameters", "  parameters", UNIT_BYTES, a->parameters, NONE);
	add(a, "peak", "optimizer_state", "  + optimizer state", UNIT_BYTES, a->state, NONE);
	row = add(a, "peak", "update", "  + gradients, optimizer's temporaries", UNIT_BYTES, update,
		  NONE);
	snprintf(row->note, sizeof(row->note), "%s",
		 update > a->activations ? "the greater: this counts" : "");
	row = add(a, "peak", "activations", "    or activations", UNIT_BYTES, a->activations, NONE);
	snprintf(row->note, sizeof(row->note), "%s",
		 update > a->activations ? "" : "the greater: this counts");
	if (a->optimizer[0])
		add(a, "peak", "optimizer_temporaries", "optimizer's temporaries, at most N P",
		    UNIT_BYTES, a->temporaries, n > 0 ? greater(a->shape.trainable, 0) : NONE);
}

static void residual_rows(struct account *a, struct timeline *t, const struct snapshot *peak)
{
	static const char *const temporary[] = { "optimizer_temporaries", "backward_temporaries",
						 "forward_temporaries" };
	const struct moment *mo = &peak->moment;
	const char *s = "residual";
	uint64_t bytes = 0, unused = mo->reserved > mo->bytes ? mo->reserved - mo->bytes : 0;
	struct account_row *row;
	char b[HUMAN_MAX];

	for (size_t i = 0; i < sizeof(temporary) / sizeof(temporary[0]); i++)
		bytes += snapshot_bytes(peak, temporary[i]);
	add(a, s, "temporaries", "temporary buffers", UNIT_BYTES, bytes, NONE);
	add(a, s, "workspace", "workspaces of libraries", UNIT_BYTES,
	    snapshot_bytes(peak, "workspace"), NONE);
	add(a, s, "communication", "communication", UNIT_BYTES,
	    snapshot_bytes(peak, "communication"), NONE);
	add(a, s, "unknown", "of no known class", UNIT_BYTES, snapshot_bytes(peak, "unknown"),
	    NONE);
	if (t->framework) {
		row = add(a, s, "cached_unused", "cached, not in use", UNIT_BYTES, unused, NONE);
		if (unused)
			snprintf(row->note, sizeof(row->note), "largest hole %s",
				 human_bytes(b, holders_largest_hole(mo)));
	}
	add(a, s, "context", "context, modules, others", UNIT_BYTES, mo->context, NONE);
}

/* What was free when memory ran out, and why it was not enough. */
static void oom_rows(struct account *a, struct timeline *t, const struct snapshot *oom)
{
	const struct model_device *d = &t->model.devices[t->device];
	const struct moment *mo = &oom->moment;
	double cached = mo->reserved > mo->bytes ? mo->reserved - mo->bytes : 0;
	double outside = mo->free_bytes, hole = holders_largest_hole(mo);
	double available = cached + outside, asked = d->oom_asked;
	const char *s = "out_of_memory";
	struct account_row *row;

	row = add(a, s, "asked", "asked for", UNIT_BYTES, asked, NONE);
	if (available >= asked && hole < asked && outside < asked)
		snprintf(row->note, sizeof(row->note),
			 "fragmentation: enough was free, but in no one piece");
	row = add(a, s, "free", "free: cached, not in use, and outside", UNIT_BYTES, available,
		  NONE);
	if (mo->total_bytes)
		snprintf(row->note, sizeof(row->note), "%.0f %% of the device",
			 100 * available / mo->total_bytes);
	add(a, s, "largest_hole", "the largest piece of it in the cache", UNIT_BYTES, hole, NONE);
	add(a, s, "outside", "free outside of the cache", UNIT_BYTES, outside, NONE);
}

void account_rows(struct account *a, struct timeline *t, const struct snapshot *peak,
		  const struct snapshot *oom)
{
	if (!a->parameters)
		a->parameters = snapshot_bytes(peak, "parameters");
	parameter_rows(a);
	if (a->step)
		activation_rows(a);
	peak_rows(a, t);
	residual_rows(a, t, peak);
	if (oom)
		oom_rows(a, t, oom);
}
