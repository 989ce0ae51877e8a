/* SPDX-License-Identifier: Apache-2.0 */
#include "study.h"

static void note_left(struct study_left *l, const struct history *h)
{
	enum { WORKSPACES = 2 };

	if (l->backward != h->born_backward)
		*l = (struct study_left){ .backward = h->born_backward, .most = l->most };
	l->bytes += h->block.size;
	if (++l->blocks > WORKSPACES && l->bytes > l->most)
		l->most = l->bytes;
}

/* Adds up gradients by whether backward freed them. Without tags: blocks that backward leaves. */
static void note_gradient(struct study *st, const struct history *h)
{
	bool gone = h->block.died_seq && stage_is_backward(h->died_stage);

	if (h->block.died_seq && !gone && h->stage == STAGE_BACKWARD)
		study_gradient_size(st, h->block.size);
	if (h->signs & STACK_BUCKET)
		st->buckets += h->block.size;
	if (h->facts.tags & BLOCK_GRAD && !(h->signs & STACK_BUCKET))
		*(gone ? &st->grads_gone : &st->grads_kept) += h->block.size;
	else if (!st->m->tags && !gone && h->stage == STAGE_BACKWARD)
		note_left(&st->left, h);
}

static void keep_concluded(struct study *st, const struct history *h)
{
	static const struct concluded none;

	if (!h->block.life || rows_equal(&h->concluded, &none, sizeof(none)))
		return;
	rows_reach(&st->concluded_of, h->block.life + 1);
	*(uint32_t *)rows_change(&st->concluded_of, h->block.life) =
		rows_share(&st->concluded, st->concluded_recent, &h->concluded);
}

void study_history(const struct study *st, const struct block *b, struct history *h)
{
	uint32_t at = 0;

	model_history(st->m, b, h);
	if (b->life < st->concluded_of.count)
		at = *(uint32_t *)rows_at(&st->concluded_of, b->life);
	if (at)
		h->concluded = *(struct concluded *)rows_at(&st->concluded, at);
}

static void born(void *ctx, struct history *h)
{
	study_sets_born(ctx, h);
	study_lines_born(ctx, h);
	study_predecessors_born(ctx, h);
	study_passes_born(ctx, h);
	study_loaded_born(ctx, h);
}

static void died(void *ctx, const struct history *h, const struct gmt_event *e)
{
	if (h->signs & STACK_LOAD)
		study_loaded_over(ctx);
	note_gradient(ctx, h);
	study_old_end(ctx, h);
	study_habits_died(ctx, h);
	study_passes_died(ctx, h);
	study_predecessors_died(ctx, h, e);
	study_uses_died(ctx, h);
	keep_concluded(ctx, h);
}

static void backward_over(void *ctx, const struct gmt_event *e)
{
	study_loaded_over(ctx);
	study_backward_over(ctx, e);
}

static void gradient(void *ctx, const struct history *h)
{
	study_gradient_size(ctx, h->block.size);
}

static void settled(void *ctx)
{
	struct study *st = ctx;

	for (int d = 0; d < MODEL_DEVICES && !st->settled; d++)
		LIVE_EACH (&st->m->devices[d].live, h)
			note_gradient(st, h);
	study_settle_old(st);
	study_settle_work(st);
	study_loaded_over(st);
	for (int d = 0; d < MODEL_DEVICES; d++)
		LIVE_EACH (&st->m->devices[d].live, h)
			keep_concluded(st, h);
}

static void moved(void *ctx, struct model *to)
{
	((struct study *)ctx)->m = to;
}

static void freed(void *ctx)
{
	struct study *st = ctx;

	rows_free(&st->concluded);
	rows_free(&st->concluded_of);
	map_free(&st->habits);
	map_free(&st->made_of);
	map_free(&st->sizes);
	map_items_free(&st->sets);
	map_items_free(&st->lines);
	map_items_free(&st->before);
	map_items_free(&st->threads);
	free(st->makers);
	map_items_free(&st->reduced);
	free(st->loaded);
	free(st->passes);
	free(st->updates);
	map_free(&st->graph_paths);
	free(st);
}

void study_begin(struct model *m)
{
	static const struct model_watch watch = {
		.born = born,
		.died = died,
		.leaf = study_leaf,
		.leaf_moved = study_leaf_moved,
		.gradient = gradient,
		.backward_over = backward_over,
		.used = study_used,
		.settled = settled,
		.moved = moved,
		.freed = freed,
	};
	struct study *st = need_new(sizeof(*st));

	st->m = m;
	rows_init(&st->concluded, sizeof(struct concluded), NULL);
	rows_init(&st->concluded_of, sizeof(uint32_t), m->lives.pool);
	rows_add(&st->concluded);
	m->watch = &watch;
	m->watcher = st;
}
