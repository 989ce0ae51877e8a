/* SPDX-License-Identifier: Apache-2.0 */
/* Measures: what lay in memory at the ends of the phases of one step in the steady state. */
#include "account.h"

#include <stdio.h>
#include <string.h>

#include "../moments/refusals.h"
#include "module_tree.h"

/* The last step that ended and has both passes: its predecessors made all the state. Without one,
 * the last with a forward pass. */
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

static const struct span *span_of(const struct timeline *t, const struct step *step,
				  enum phase phase, bool last)
{
	const struct span *found = NULL;

	for (size_t i = step->first; i <= step->last && i < t->model.spans.count; i++) {
		const struct span *s = &t->model.spans.items[i];

		if (s->phase == phase && (!found || last))
			found = s;
	}
	return found;
}

/* Whether a module seems to be called once for each layer: everything in it is there so often, but
 * for the first or the last one's. */
static bool is_repeated(const struct flame *m, const struct flame_node *x, uint64_t layers)
{
	for (uint32_t i = x->first; i; i = m->nodes[i].next)
		if (m->nodes[i].blocks + 1 < layers)
			return false;
	return x->first;
}

/* The layer among the modules: of all that are repeated the largest, and inside of it the innermost
 * that still has nearly all. */
static void layer_bytes(struct account *a, struct timeline *t, const struct snapshot *s,
			int category)
{
	uint64_t layers = shape_get(&a->shape, SHAPE_LAYERS), most = 0;
	struct flame m;

	if (layers < 2)
		return;
	modules_find(&m, s, category, &t->stacks);
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
	int category = category_by_name("activations");

	a->activations = snapshot_bytes(s, "activations");
	for (size_t i = 0; i < s->moment.count; i++) {
		const struct block *b = &s->moment.blocks[i];

		if (s->classes[i] != category || b->size <= a->largest_activation)
			continue;
		a->largest_activation = b->size;
		a->largest_owner = owners_find(&t->owners, b);
	}
	layer_bytes(a, t, s, category);
}

/* rest: at the end of the optimizer's step, NULL if there is none. */
static void measure_forward(struct account *a, struct timeline *t, const struct step *step,
			    const struct snapshot *rest, const double given[SHAPE_FIGURES])
{
	const struct span *f = span_of(t, step, PHASE_FORWARD, true);
	struct snapshot s;

	if (!f)
		return;
	snapshot_take(&s, t, f->extent.last_seq);
	if (!a->parameters)
		a->parameters = snapshot_bytes(&s, "parameters");
	shape_find(&a->shape, step, &f->extent, &s, rest ? rest : &s, a->state, given);
	look_at_activations(a, t, &s);
	snapshot_free(&s);
}

static void measure_backward(struct account *a, struct timeline *t, const struct step *step)
{
	const struct span *b = span_of(t, step, PHASE_BACKWARD, true);
	struct snapshot s;

	if (!b)
		return;
	snapshot_take(&s, t, b->extent.last_seq);
	a->gradients = snapshot_bytes(&s, "gradients");
	snapshot_free(&s);
}

static void look_at_update(struct account *a, const struct snapshot *s, const struct extent *x)
{
	uint64_t stays = x->begin_bytes + (x->growth > 0 ? x->growth : 0);

	a->parameters = snapshot_bytes(s, "parameters");
	a->state = snapshot_bytes(s, "optimizer_state");
	a->temporaries = x->peak > stays ? x->peak - stays : 0;
}

static void measure_step(struct account *a, struct timeline *t, const struct step *step,
			 const double given[SHAPE_FIGURES])
{
	const struct span *o = span_of(t, step, PHASE_OPTIMIZER, true);
	struct snapshot rest;

	if (o) {
		snapshot_take(&rest, t, o->extent.last_seq);
		look_at_update(a, &rest, &o->extent);
	}
	measure_forward(a, t, step, o ? &rest : NULL, given);
	if (o)
		snapshot_free(&rest);
}

static void add_rows(struct account *a, struct timeline *t)
{
	struct snapshot peak, oom;
	struct refusal refusal;
	bool ran_out =
		refusals_find(&refusal, &t->model.lives, 0) && refusal.event.device == t->device;
	size_t step;

	snapshot_take(&peak, t, timeline_peak(t, &step)->peak_seq);
	if (ran_out)
		snapshot_take(&oom, t, refusal.event.seq);
	account_rows(a, t, &peak, ran_out ? &oom : NULL);
	snapshot_free(&peak);
	if (ran_out)
		snapshot_free(&oom);
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
	measure_backward(out, t, step);
	add_rows(out, t);
}
