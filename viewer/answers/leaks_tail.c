/* SPDX-License-Identifier: Apache-2.0 */
/* Passes that no step is compared with: those after the last step, such as a validation's, and
 * those of the first. */
#include "../base/human.h"
#include "../recording/owner_words.h"
#include "holders.h"
#include "leaks.h"

enum { FEWEST = 8 };

/* The first event of the last pass after the last step; 0 = too few passes came after it. */
static uint64_t last_pass(const struct timeline *t, uint64_t end)
{
	const struct lives *l = &t->model.lives;
	uint32_t first = lives_born_by(l, end), n = l->rows.count, i = n;
	uint32_t passes = t->model.spans.forwards;

	if (!first || passes < lives_read(l, first - 1).born->forwards + FEWEST)
		return 0;
	while (i > first && lives_read(l, i - 1).born->forwards == passes)
		i--;
	return i < n ? lives_read(l, i).from : 0;
}

/* Results of passes, and the lines that made them. */
struct kept {
	uint64_t all, saved;
	struct holders lines;
	struct map passes;
};

static void add_kept(struct kept *k, struct timeline *t, const struct block *b)
{
	k->all += b->size;
	k->saved += b->state & LIFE_SAVED ? b->size : 0;
	holders_add(&k->lines, CATEGORIES, owners_find(&t->owners, b), b->size);
	if (model_born(&t->model, b)->stage == STAGE_FORWARD)
		map_put(&k->passes, model_born(&t->model, b)->forwards, NULL);
}

/* Adds to the text, which is about passes. False: these are few, or a small part of the memory. */
static bool say_kept(struct kept *k, const struct snapshot *shot, size_t passes, const char *how,
		     char *text, size_t room)
{
	bool many = passes >= FEWEST && k->all >= shot->moment.bytes / 4;
	char who[OWNER_WORDS];

	holders_sort(&k->lines);
	if (many)
		text_add(text, room,
			 " Results of %zu of them, %s, were kept %s, %s of it by %s. %s", passes,
			 B(k->all), how,
			 2 * k->lines.items->bytes > k->all ? "most" : B(k->lines.items->bytes),
			 owner_words(&k->lines.items->owner, who, sizeof(who), 0),
			 2 * k->saved > k->all
				 ? "Graphs of these passes are kept: if no backward pass follows, "
				   "call the model under torch.no_grad(), else keep x.detach() in "
				   "place of the tensor that holds them."
				 : "Keep x.detach().cpu() in place of what is kept.");
	free(k->lines.items);
	map_free(&k->passes);
	return many;
}

bool leaks_tail_words(struct timeline *t, char *text, size_t room)
{
	size_t step = leaks_last_step(t);
	uint64_t end = step ? leaks_work_end(t, &t->steps.items[step]) : 0, at;
	struct kept kept = { 0 };
	struct snapshot shot;
	bool said;

	at = t->steps.basis == STEPS_OPTIMIZER ? last_pass(t, end) : 0;
	if (!at)
		return false;
	snapshot_take(&shot, t, at - 1);
	FOR_BLOCKS (b, &shot.moment)
		if (b->seq > end && category_in(b->category, OF_ONE_PASS))
			add_kept(&kept, t, b);
	text_put(text, room,
		 "After step %zu came passes without an optimizer's step, which are not compared.",
		 step);
	said = say_kept(&kept, &shot, snapshot_passes(&shot, end, OF_ONE_PASS),
			"until the last one", text, room);
	moment_free(&shot.moment);
	return said;
}

/* The passes of the first step may be those of another model, which encodes a data set before the
 * training. */
bool leaks_head_words(struct timeline *t, char *text, size_t room)
{
	size_t step = leaks_last_step(t);
	uint64_t end = step > 2 ? t->steps.items[1].extent.last_seq : 0;
	struct kept kept = { 0 };
	struct snapshot shot;
	struct block_uses x;
	bool said;

	if (!end || t->steps.basis != STEPS_OPTIMIZER || !uses_complete(&t->model))
		return false;
	snapshot_take(&shot, t, leaks_work_end(t, &t->steps.items[step]));
	FOR_BLOCKS (b, &shot.moment) {
		if (b->seq > end || !b->life || !category_in(b->category, OF_ONE_PASS))
			continue;
		uses_of(&t->model, b->life - 1, &x);
		if (x.count && x.last_seq <= end)
			add_kept(&kept, t, b);
	}
	text_put(text, room, "Many passes came before the end of the first step.");
	said = say_kept(&kept, &shot, kept.passes.count,
			"until the last step though nothing has used them since", text, room);
	moment_free(&shot.moment);
	return said;
}
