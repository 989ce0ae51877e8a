/* SPDX-License-Identifier: Apache-2.0 */
/* Passes after the last step, such as a validation's: no step ends there that could be compared. */
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

bool leaks_tail_words(struct timeline *t, char *text, size_t room)
{
	size_t step = leaks_last_step(t);
	uint64_t end = step ? leaks_work_end(t, &t->steps.items[step]) : 0, at, saved = 0, all = 0;
	struct holders lines = { 0 };
	struct snapshot shot;
	char who[OWNER_WORDS];
	size_t passes;

	at = t->steps.basis == STEPS_OPTIMIZER ? last_pass(t, end) : 0;
	if (!at)
		return false;
	snapshot_take(&shot, t, at - 1);
	FOR_BLOCKS (b, &shot.moment) {
		if (b->seq <= end || !category_in(b->category, OF_ONE_PASS))
			continue;
		all += b->size;
		saved += b->state & LIFE_SAVED ? b->size : 0;
		holders_add(&lines, CATEGORIES, owners_find(&t->owners, b), b->size);
	}
	holders_sort(&lines);
	passes = snapshot_passes(&shot, end, OF_ONE_PASS);
	if (passes >= FEWEST && all >= shot.moment.bytes / 4)
		snprintf(text, room,
			 "After step %zu came passes without an optimizer's step, which are not "
			 "compared. Results of %zu of them, %s, were kept until the last one, "
			 "most of them by %s. %s",
			 step, passes, B(all),
			 owner_words(&lines.items->owner, who, sizeof(who), 0),
			 2 * saved > all ? "Graphs of these passes are kept: if no backward pass "
					   "follows, call the model under torch.no_grad(), else "
					   "keep x.detach() in place of the tensor that holds them."
					 : "Keep x.detach().cpu() in place of what is kept.");
	else
		passes = 0;
	free(lines.items);
	moment_free(&shot.moment);
	return passes;
}
