/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forward passes, for recordings without autograd's tags: how much of what a pass made was there
 * when it was over (a graph keeps most of it, no graph next to nothing), and which backward pass
 * walked it back.
 */
#include "../base/need.h"
#include "model_parts.h"

static struct model_pass *pass_of(struct model *m, uint32_t number)
{
	while (number >= m->pass_count) {
		m->passes = need_grow(m->passes, &m->pass_room, m->pass_count, sizeof(*m->passes));
		m->passes[m->pass_count++] = (struct model_pass){ 0 };
	}
	return &m->passes[number];
}

const struct model_pass *model_pass_of(const struct model *m, uint32_t number)
{
	return number < m->pass_count ? &m->passes[number] : NULL;
}

bool model_keeps_graph(const struct model_pass *p)
{
	enum { FEW = 8 };

	return p && !p->walked && p->blocks >= FEW && p->gone < p->blocks - p->blocks / 4;
}

bool model_keeps_much(const struct model_pass *p)
{
	enum { FEW = 8 };

	return p->blocks >= FEW && p->gone < p->blocks - p->blocks / 3;
}

bool model_takes_graph_on(const struct model_pass *p)
{
	return model_keeps_graph(p) && p->gone + p->dropped < p->blocks - p->blocks / 4;
}

/* A graph that is dropped gives up all at once. */
static void note_run(struct model_pass *p, const struct history *b)
{
	enum { NEAR = 8 };

	if (!p->run.blocks || b->block.died_seq - p->run.to > NEAR)
		p->run = (struct model_run){ .from = b->block.died_seq };
	p->run.to = b->block.died_seq;
	p->run.blocks++;
	if (p->run.blocks >= p->longest.blocks)
		p->longest = p->run;
}

bool model_died_with_pass(const struct model_pass *p, const struct history *b)
{
	return !b->block.died_seq ||
	       (p->longest.from <= b->block.died_seq && b->block.died_seq <= p->longest.to);
}

static void note_stack(uint32_t stacks[MODEL_MADE], uint32_t stack)
{
	for (int i = 0; i < MODEL_MADE; i++) {
		if (!stacks[i])
			stacks[i] = stack;
		if (stacks[i] == stack)
			break;
	}
}

void model_note_pass(struct model *m, struct history *b)
{
	struct model_pass *p;

	if (b->block.memory || (b->stage != STAGE_FORWARD && b->stage != STAGE_OUTSIDE))
		return;
	p = pass_of(m, b->born_forward);
	if (b->stage == STAGE_FORWARD) {
		p->blocks++;
		p->last = b->block.seq;
		b->module_path = m->tags ? 0 : signs_stem(&m->signs, b->block.stack);
	} else if (b->block.stack) {
		note_stack(p->made, b->block.stack);
	}
}

static void note_graph(struct model_pass *p, const struct history *b)
{
	int i = p->graphs[0].from && p->graphs[0].backward != b->born_backward;

	if (p->graphs[i].from && p->graphs[i].backward == b->born_backward &&
	    p->graphs[i].from < b->block.seq)
		return;
	p->graphs[i].from = b->block.seq;
	p->graphs[i].backward = b->born_backward;
}

bool model_is_of_graph(const struct model *m, const struct history *b)
{
	const struct model_pass *p = model_pass_of(m, b->born_forward);

	for (int i = 0; b->stage == STAGE_OUTSIDE && p && i < 2; i++)
		if (p->graphs[i].from && p->graphs[i].from < b->block.seq &&
		    p->graphs[i].backward == b->born_backward)
			return true;
	return false;
}

/* What backward gives up was of a graph: the pass was walked back, or the script's own part. */
static void note_walk(struct model *m, struct model_pass *p, const struct history *b)
{
	bool fresh;

	if (b->module_path)
		*map_put(&m->walked, b->module_path, &fresh) = 1;
	if (b->stage == STAGE_FORWARD && !p->walked)
		p->walked = b->died_backward;
	if (b->stage == STAGE_OUTSIDE && b->died_backward == b->born_backward + 1)
		note_graph(p, b);
}

void model_note_pass_end(struct model *m, const struct history *b)
{
	struct model_pass *p;

	if (b->block.memory || (b->stage != STAGE_FORWARD && b->stage != STAGE_OUTSIDE))
		return;
	p = pass_of(m, b->born_forward);
	if (b->stage == STAGE_FORWARD && b->died_stage == STAGE_FORWARD &&
	    b->died_forward == b->born_forward)
		p->gone++;
	else if (b->stage == STAGE_FORWARD && b->died_backward == b->born_backward)
		p->dropped++;
	if (b->stage == STAGE_FORWARD)
		note_run(p, b);
	if (b->block.stack && model_was_kept(b))
		note_stack(p->kept, b->block.stack);
	if ((b->died_stage == STAGE_BACKWARD || b->died_stage == STAGE_RECOMPUTE) &&
	    b->died_backward > b->born_backward)
		note_walk(m, p, b);
}

bool model_stem_is_walked(const struct model *m, uint32_t stem)
{
	return stem && map_get(&m->walked, stem);
}

/* Of a pass of the script's own, outside of modules, nothing tells which backward pass it led to:
 * the next one. */
static bool is_walked(const struct model *m, const struct history *b)
{
	const struct model_pass *p;

	if (b->backward_over || b->born_backward == m->spans.backwards)
		return false;
	p = model_pass_of(m, b->born_forward);
	if (b->stage == STAGE_OUTSIDE)
		return !(b->after_forward && model_keeps_graph(p));
	return b->stage == STAGE_FORWARD && p->walked;
}

void model_end_walk(struct model *m, const struct gmt_event *e)
{
	if (m->tags || m->walks_over == m->spans.backwards)
		return;
	m->walks_over = m->spans.backwards;
	for (int d = 0; d < MODEL_DEVICES; d++) {
		LIVE_EACH(&m->devices[d].live, b)
		{
			if (!is_walked(m, b))
				continue;
			b->backward_over = true;
			model_row_change(m, b, CHANGE_BACKWARD_OVER, e);
		}
	}
}
