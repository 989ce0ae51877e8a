/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forward passes, for recordings without autograd's tags: how many blocks of a pass outlived it
 * (many if a graph holds them, hardly any without one), and which backward pass freed them.
 */
#include "study.h"

static struct forward_pass *pass_of(struct study *st, uint32_t number)
{
	while (number >= st->pass_count)
		*need_item(st->passes, st->pass_count, st->pass_room) = (struct forward_pass){ 0 };
	return &st->passes[number];
}

const struct forward_pass *study_pass_of(const struct study *st, uint32_t number)
{
	return number < st->pass_count ? &st->passes[number] : NULL;
}

bool pass_keeps_graph(const struct forward_pass *p)
{
	enum { FEW = 8 };

	return p && !p->backward && p->blocks >= FEW && p->gone < p->blocks - p->blocks / 4;
}

bool pass_keeps_much(const struct forward_pass *p)
{
	enum { FEW = 8 };

	return p->blocks >= FEW && p->gone < p->blocks - p->blocks / 3;
}

bool pass_takes_graph_on(const struct forward_pass *p)
{
	return pass_keeps_graph(p) && p->gone + p->dropped < p->blocks - p->blocks / 4;
}

bool pass_returned(const struct forward_pass *p, uint64_t size)
{
	return p && p->last_size &&
	       (study_as_large(2 * p->last_size, size) || study_as_large(p->last_size, 2 * size));
}

/* Adds the stack if it is new. Its index, or STUDY_MADE if there is no room. */
static int note_stack(uint32_t stacks[STUDY_MADE], uint32_t stack)
{
	int i = 0;

	while (i < STUDY_MADE && stacks[i] && stacks[i] != stack)
		i++;
	if (i < STUDY_MADE)
		stacks[i] = stack;
	return i;
}

static void note_kept(struct forward_pass *p, const struct history *b)
{
	int i = note_stack(p->kept, b->block.stack);

	if (i < STUDY_MADE && b->block.size > p->largest_kept[i])
		p->largest_kept[i] = b->block.size;
}

void study_passes_born(struct study *st, struct history *b)
{
	struct forward_pass *p;

	if (b->block.memory || (b->stage != STAGE_FORWARD && b->stage != STAGE_OUTSIDE))
		return;
	p = pass_of(st, b->born_forward);
	if (b->stage == STAGE_FORWARD) {
		p->blocks++;
		p->last = b->block.seq;
		p->last_size = b->block.size;
		b->module_path = st->m->tags ? 0 : signs_module_path(&st->m->signs, b->block.stack);
	} else if (b->block.stack) {
		note_stack(p->made, b->block.stack);
	}
}

static void note_graph(struct forward_pass *p, const struct history *b)
{
	int i = p->graphs[0].from && p->graphs[0].backward != b->born_backward;

	if (p->graphs[i].from && p->graphs[i].backward == b->born_backward &&
	    p->graphs[i].from < b->block.seq)
		return;
	p->graphs[i].from = b->block.seq;
	p->graphs[i].backward = b->born_backward;
}

bool study_is_of_graph(const struct study *st, const struct history *b)
{
	const struct forward_pass *p = study_pass_of(st, b->born_forward);

	for (int i = 0; b->stage == STAGE_OUTSIDE && p && i < 2; i++)
		if (p->graphs[i].from && p->graphs[i].from < b->block.seq &&
		    p->graphs[i].backward == b->born_backward)
			return true;
	return false;
}

/* A block that backward frees was part of a graph: of the pass's, or of the script's own part. */
static void note_backward(struct study *st, struct forward_pass *p, const struct history *b)
{
	if (b->module_path)
		map_put(&st->graph_paths, b->module_path, NULL);
	if (b->stage == STAGE_FORWARD && !p->backward)
		p->backward = b->died_backward;
	if (b->stage == STAGE_OUTSIDE && b->died_backward == b->born_backward + 1)
		note_graph(p, b);
}

void study_passes_died(struct study *st, const struct history *b)
{
	struct forward_pass *p;

	if (b->block.memory || (b->stage != STAGE_FORWARD && b->stage != STAGE_OUTSIDE))
		return;
	p = pass_of(st, b->born_forward);
	if (b->stage == STAGE_FORWARD && b->died_stage == STAGE_FORWARD &&
	    b->died_forward == b->born_forward)
		p->gone++;
	else if (b->stage == STAGE_FORWARD && b->died_backward == b->born_backward)
		p->dropped++;
	if (b->block.stack && life_was_kept(b))
		note_kept(p, b);
	if ((b->died_stage == STAGE_BACKWARD || b->died_stage == STAGE_RECOMPUTE) &&
	    b->died_backward > b->born_backward)
		note_backward(st, p, b);
}

bool study_path_is_of_graph(const struct study *st, uint32_t module_path)
{
	return module_path && map_get(&st->graph_paths, module_path);
}

/* True if the backward pass of the block's pass is over. For the script's own work, outside of
 * modules, that is assumed to be the next backward pass. */
static bool is_over(const struct study *st, const struct history *b)
{
	const struct forward_pass *p;

	if (b->backward_over || b->born_backward == st->m->spans.backwards)
		return false;
	p = study_pass_of(st, b->born_forward);
	if (b->stage == STAGE_OUTSIDE)
		return !(b->after_forward && pass_keeps_graph(p));
	return b->stage == STAGE_FORWARD && p->backward;
}

void study_backward_over(void *ctx, const struct gmt_event *e)
{
	struct study *st = ctx;

	if (st->m->tags || st->backward_over == st->m->spans.backwards)
		return;
	st->backward_over = st->m->spans.backwards;
	for (int d = 0; d < MODEL_DEVICES; d++)
		LIVE_EACH (&st->m->devices[d].live, b) {
			if (!is_over(st, b))
				continue;
			b->backward_over = true;
			model_change(st->m, b, CHANGE_BACKWARD_OVER, e);
		}
}
