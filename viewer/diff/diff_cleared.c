/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gradients that one program gives up between its steps and the other keeps: zeroed in place
 * (set_to_none=False), or never cleared. They then stand in memory at other moments, and what
 * backward computes for them is a second copy. The line that is to be read is that of zero_grad,
 * which makes no memory itself: it is known from what it freed, if only on the other side.
 */
#include <string.h>

#include "diff_causes.h"

#include "../base/ending.h"

#define FEWEST 2 /* steps before which nothing had to be cleared */

static bool clears(const struct diff_side *s)
{
	return classify_clears_gradients(&s->timeline.model);
}

static bool is_zero_grad(const struct frame *f)
{
	return !strcmp(ending_behind(f->function, '.'), "zero_grad") &&
	       (strstr(f->file, "torch/optim/") || strstr(f->file, "torch/nn/modules/"));
}

/* The program's line that calls zero_grad. */
static bool find_line(struct diff_side *s, struct owner *out)
{
	const struct map *ids = &s->recording.defs.nodes.ids;
	const struct defs_node *nodes = s->recording.defs.nodes.items;
	struct stacks *st = &s->timeline.stacks;

	for (size_t i = 0; i < ids->room; i++) {
		size_t k = 0;

		if (!ids->slots[i].used || nodes[ids->slots[i].value].frame != GMT_FRAME_PYTHON)
			continue;
		stacks_read_python(st, (uint32_t)ids->slots[i].key);
		if (!st->count || !is_zero_grad(&st->frames[0]))
			continue;
		while (k < st->count && owners_is_plumbing(st->frames[k].file))
			k++;
		if (k == st->count)
			continue;
		*out = (struct owner){ .function = st->frames[k].function,
				       .file = st->frames[k].file,
				       .line = st->frames[k].line };
		return true;
	}
	return false;
}

bool diff_has_gradients(const struct diff_side *s)
{
	return s->timeline.model.spans.backwards || s->shot.bytes[CATEGORY_gradients] ||
	       s->at_peak.bytes[CATEGORY_gradients];
}

bool diff_keeps_gradients(const struct diff *d)
{
	return diff_has_gradients(&d->old) && diff_has_gradients(&d->new) &&
	       clears(&d->old) != clears(&d->new) &&
	       steps_number(&d->old.timeline.steps) >= FEWEST &&
	       steps_number(&d->new.timeline.steps) >= FEWEST;
}

static bool takes_kept_gradients(const struct diff *d, const struct diff_pair *p, const void *ctx)
{
	const bool *more = ctx;

	(void)d;
	if (*more ? diff_delta(p) < 0 : diff_delta(p) > 0)
		return false;
	return p->category == CATEGORY_gradients ||
	       (p->category == CATEGORY_backward_temporaries && p->blocks_old != p->blocks_new);
}

void diff_find_cleared(struct diff *d)
{
	const bool more = clears(&d->old);
	struct diff_finding *f;
	struct owner line;

	if (!diff_keeps_gradients(d))
		return;
	f = diff_collect(d, CAUSE_GRADIENTS, BIT(gradients), takes_kept_gradients, &more);
	if (f && (find_line(&d->new, &line) || find_line(&d->old, &line)))
		f->owner = line;
}
