/* SPDX-License-Identifier: Apache-2.0 */
#include "unused.h"

#include "../base/human.h"
#include "used.h"

enum { SHARE = 100 }; /* less than this part of what is there is not worth a word */

/* A cache of keys and values waits for the next request, a buffer belongs to a model in use. */
#define TRAINED (OF_THE_MODEL & ~CLASS_BIT(buffers))

/* The last use; 0: it is in use. Where the rest is known it is not used for a step. */
static uint64_t idle_since(const struct timeline *t, const struct moment *mo, const struct block *b,
			   uint64_t refused, const struct used_weights *w)
{
	enum use_future future;
	struct block_uses x;

	if (!category_in(b->category, TRAINED) || !b->life)
		return 0;
	uses_of(&t->model, b->life - 1, &x);
	future = uses_future(&t->model, mo, b->life - 1, refused);
	if (future == FUTURE_REFUSED)
		return used_no_more(t, mo->seq, &x, w, b->category == CATEGORY_parameters)
			       ? x.last_seq
			       : 0;
	return future == FUTURE_OVER && used_long_ago(t, mo->seq, x.last_seq) ? x.last_seq : 0;
}

static struct used_weights weights_at(const struct timeline *t, const struct moment *mo)
{
	struct used_weights w = USED_WEIGHTS;

	FOR_EACH (const struct block, b, mo->blocks, mo->count)
		if (b->category == CATEGORY_parameters && b->life)
			used_weight(&w, t, mo->seq, b->life - 1);
	return w;
}

static void add_unused_block(struct unused *u, struct timeline *t, const struct block *b,
			     uint64_t since)
{
	size_t step = steps_at(&t->steps, since);

	u->step = step > u->step ? step : u->step;
	u->bytes += b->size;
	u->classes[b->category] += b->size;
	holders_add(&u->holders, b->category, owners_find(&t->owners, b), b->size);
}

void unused_find(struct unused *u, struct timeline *t, const struct snapshot *shot)
{
	const struct moment *mo = &shot->moment;
	struct used_weights w = weights_at(t, mo);
	uint64_t refused = uses_refused(&t->model, mo), bytes = 0;

	*u = (struct unused){ .since = need_new((mo->count + 1) * sizeof(*u->since)) };
	for (size_t i = 0; i < mo->count && uses_complete(&t->model); i++) {
		u->since[i] = idle_since(t, mo, &mo->blocks[i], refused, &w);
		bytes += u->since[i] ? mo->blocks[i].size : 0;
	}
	for (size_t i = 0; i < mo->count; i++)
		if (bytes < mo->bytes / SHARE)
			u->since[i] = 0;
		else if (u->since[i])
			add_unused_block(u, t, &mo->blocks[i], u->since[i]);
	holders_sort(&u->holders);
}

void unused_at_end(struct unused *u, struct timeline *t)
{
	size_t n = steps_number(&t->steps);
	struct snapshot shot;

	while (n && !t->steps.items[n].ended)
		n--;
	if (!n || t->device < 0)
		return;
	snapshot_take(&shot, t, t->steps.items[n].extent.last_seq);
	unused_find(u, t, &shot);
	moment_free(&shot.moment);
}

void unused_free(struct unused *u)
{
	free(u->since);
	free(u->holders.items);
	*u = (struct unused){ 0 };
}

const char *unused_words(const struct unused *u, char *buf, size_t room)
{
	if (u->step)
		snprintf(buf, room, "have not been used since step %zu (", u->step);
	else
		snprintf(buf, room, "were last used before the first step (");
	for (unsigned c = 0, n = 0; c < CATEGORIES; c++)
		if (u->classes[c])
			text_add(buf, room, "%s%s %s", n++ ? ", " : "", categories[c].words,
				 B(u->classes[c]));
	text_add(buf, room, ")");
	return buf;
}
