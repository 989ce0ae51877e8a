/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backward nodes, found by the work that they launch. A node whose saved tensors come from a hook
 * (of checkpoint or save_on_cpu) releases them once it has computed its results. Sums that
 * bring a result to its tensor's shape come later, because autograd launches them.
 */
#include <sys/mman.h>

#include "../../format/record.h"
#include "../base/arithmetic.h"
#include "advise.h"

struct walk {
	struct advise *advise;
	advise_node *look;
	void *ctx;
	struct node_run now;
	uint32_t node;	 /* STRING of the current node's name; 0 = none */
	uint64_t before; /* event after the previous work */
	uint32_t born;	 /* lives born by then */
	bool summed;	 /* the previous work was a sum */
	struct map sums; /* by STRING of a kernel's name: whether it computes one */
	uint32_t *lives; /* lives that the current node touches */
	size_t count, room;
	uint32_t *runs; /* by life: number of the latest run that touched it */
	uint32_t run;
};

static uint64_t birth(const struct lives *all, uint32_t life)
{
	return life < all->rows.count ? lives_seq(all, &lives_at(all, life)->born) : PLAN_END;
}

/* First birth after the previous work, because the previous node frees its tensors first. */
static uint64_t first_birth(struct walk *w, uint64_t work)
{
	while (birth(w->advise->lives, w->born) <= w->before)
		w->born++;
	return arithmetic_least(birth(w->advise->lives, w->born), work);
}

/* A sum, or the reset of its semaphores. */
static bool is_sum(struct walk *w, const struct use_kind *by)
{
	const char *s = by->name ? defs_string(w->advise->timeline->model.defs, by->name).s : "";

	return by->transfer == GMT_TRANSFER_SET ||
	       map_known(&w->sums, by->name,
			 strstr(s, "reduce_kernel") && strstr(s, "sum_functor"));
}

static void end_run(struct walk *w)
{
	if (w->count)
		w->look(w->ctx, &w->now, w->lives, w->count);
	w->count = 0;
	w->run++;
}

static void follow(void *ctx, uint32_t work, const uint32_t *lives, size_t count)
{
	struct walk *w = ctx;
	const struct uses *u = &w->advise->timeline->model.uses;
	const struct use_kind *by = uses_kind(u, work);
	uint64_t seq = uses_work(u, work)->seq;
	bool sum = by->node && is_sum(w, by);

	if (!by->node || by->node != w->node || (w->summed && !sum)) {
		end_run(w);
		w->now.begin = first_birth(w, seq);
		w->now.node = by->node;
	}
	w->node = by->node;
	w->summed = sum;
	w->before = seq + 1;
	for (size_t i = 0; i < count; i++) {
		if (!advise_counted(w->advise, lives[i]) || w->runs[lives[i]] == w->run)
			continue;
		w->runs[lives[i]] = w->run;
		*need_item(w->lives, w->count, w->room) = lives[i];
	}
	if (!sum || !w->now.end || w->now.end <= w->now.begin)
		w->now.end = seq + 1;
}

void advise_nodes(struct advise *a, advise_node *look, void *ctx)
{
	const size_t bytes = (advise_lives(a) + 1) * sizeof(uint32_t);
	struct walk w = { .advise = a, .look = look, .ctx = ctx, .run = 1 };

	w.runs = need_pages(bytes);
	advise_works(a, follow, &w);
	end_run(&w);
	free(w.lives);
	map_free(&w.sums);
	munmap(w.runs, bytes);
}
