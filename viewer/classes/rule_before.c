/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules on what was there before a recording began, without a stack: where it ended, and whether
 * there are as many of its size as a backward pass makes gradients.
 */
#include "rules.h"

/* An optimizer that makes its state anew at each step gives up the old one in it. */
bool before_state(struct classifier *c, const struct block *b)
{
	return model_is_before(c->m, b) && b->died_seq && b->died_stage == STAGE_OPTIMIZER;
}

bool before_gradient(struct classifier *c, const struct block *b)
{
	return model_is_before(c->m, b) && b->died_seq && b->died_stage == STAGE_ZERO_GRAD;
}

/* Gradients of the block's size in one pass; added: to those that are there. */
static uint32_t gradients_of(const struct classifier *c, const struct block *b, bool *added)
{
	const struct model_size *s = model_before_of(c->m, b->size);

	*added = s && !s->kept.most;
	return s ? (*added ? s->gone.most : s->kept.most) : 0;
}

static bool stands(const struct classifier *c, const struct block *b)
{
	return !c->m->tags && model_is_before(c->m, b) && b->rank;
}

/* As many as gradients, or fewer: one each. */
bool before_matched(struct classifier *c, const struct block *b)
{
	bool added;

	return stands(c, b) &&
	       model_before_of(c->m, b->size)->standing <= gradients_of(c, b, &added);
}

/* More: the model is made first. */
static bool is_beyond(struct classifier *c, const struct block *b, uint32_t from, uint32_t sets)
{
	bool added;
	uint32_t n = gradients_of(c, b, &added);

	return stands(c, b) && n && b->rank > from * n && b->rank <= sets * n;
}

/* Those that nothing made anew are added to. */
bool before_added(struct classifier *c, const struct block *b)
{
	bool added;

	return gradients_of(c, b, &added) && added && is_beyond(c, b, 1, 2);
}

bool before_rest(struct classifier *c, const struct block *b)
{
	bool added;

	return gradients_of(c, b, &added) && is_beyond(c, b, 1 + added, 4 + added);
}

/* What stays for all passes. */
bool before_weight(struct classifier *c, const struct block *b)
{
	return stands(c, b) && (c->m->forwards || c->m->backwards);
}

/* What PyTorch takes for cuBLAS on most cards; nothing else is as large by chance. */
bool before_workspace(struct classifier *c, const struct block *b)
{
	enum { CUBLAS = 8519680 };

	return stands(c, b) && b->size == CUBLAS;
}
