/* SPDX-License-Identifier: Apache-2.0 */
#include "used.h"

#include "../base/human.h"
#include "../recording/owner_words.h"
#include "../recording/symbols.h"

/* A kernel's own name, such as "multi_tensor_apply_kernel", without its C++ scope and types. */
static void kernel_word(const char *name, char *buf, size_t room)
{
	char *plain = demangle(name), brief[256];
	const char *from = plain ? demangle_brief(plain, brief, sizeof(brief)) : name;
	size_t len = plain ? strcspn(from, "<") : strlen(from), at = len;

	while (plain && at && from[at - 1] != ':' && from[at - 1] != ' ')
		at--;
	snprintf(buf, room, "%.*s", (int)(len - at ? len - at : len), from + (len - at ? at : 0));
	free(plain);
}

const char *used_by(const struct timeline *t, uint32_t work, char *buf, size_t room)
{
	const struct use_kind *k = uses_kind(&t->model.uses, work);
	const struct defs *d = &t->recording->defs;

	if (k->node)
		snprintf(buf, room, "%.200s", defs_string(d, k->node).s);
	else if (k->name)
		kernel_word(defs_string(d, k->name).s, buf, room);
	else
		snprintf(buf, room, "a CUDA graph");
	return buf;
}

const char *used_when(const struct timeline *t, uint32_t work, uint64_t ns, char *buf, size_t room)
{
	const struct use_work *w = uses_work(&t->model.uses, work);
	size_t step = steps_at(&t->steps, w->seq);
	const struct block at = { .stack = uses_kind(&t->model.uses, work)->stack, .seq = w->seq };
	struct owner owner = owners_find((struct owners *)&t->owners, &at);
	char by[256], place[OWNER_WORDS], in[48] = "";

	if (t->steps.tail && step == t->steps.count - 1)
		snprintf(in, sizeof(in), "after the last step ");
	else if (step)
		snprintf(in, sizeof(in), "in step %zu ", step);
	else if (t->steps.count > 1)
		snprintf(in, sizeof(in), "before the first step ");
	used_by(t, work, by, sizeof(by));
	if (owner.file[0] && owner.line)
		text_add(by, sizeof(by), " (%s)", owner_place(&owner, place, sizeof(place), 40));
	snprintf(buf, room, "%sby %s, %s %s", in, by, SECONDS(ns > w->ns ? ns - w->ns : w->ns - ns),
		 ns >= w->ns ? "before" : "later");
	return buf;
}

uint64_t used_ns(const struct model *m, uint32_t work)
{
	return work ? uses_work(&m->uses, work)->ns : NO_NUMBER;
}

uint64_t used_count(const struct model *m, uint32_t life)
{
	struct block_uses x;

	uses_of(m, life, &x);
	return x.whole && uses_complete(m) ? x.count : NO_NUMBER;
}

bool used_long_ago(const struct timeline *t, uint64_t seq, uint64_t last_seq)
{
	size_t step = steps_at(&t->steps, seq);

	return step > 1 && last_seq < t->steps.items[step - 1].extent.first_seq;
}

/* Used in several steps, but this one has reached its backward pass without it, and with weights
 * that came into use later. */
static bool is_left_out(const struct timeline *t, uint64_t seq, const struct block_uses *x,
			uint64_t newest)
{
	const struct step *step = &t->steps.items[steps_at(&t->steps, seq)];
	const struct span *spans = &t->model.spans.items[step->first];

	return x->last_seq < step->extent.first_seq && newest > x->last_seq &&
	       steps_at(&t->steps, x->first_seq) + 1 < steps_at(&t->steps, x->last_seq) &&
	       ANY_OF(s, spans, step_spans(&t->model.spans, step),
		      s->phase == PHASE_BACKWARD && s->extent.first_seq <= seq);
}

bool used_no_more(const struct timeline *t, uint64_t seq, const struct block_uses *x,
		  const struct used_weights *w, bool weight)
{
	uint32_t passed = uses_passed(&t->model, &x->works, seq);
	size_t first = steps_at(&t->steps, x->first_seq), last = steps_at(&t->steps, x->last_seq);

	if (x->whole && weight && is_left_out(t, seq, x, w->newest))
		return true;
	if (!x->whole || !used_long_ago(t, seq, x->last_seq) || passed <= 2 * x->works.widest)
		return false;
	return last > first + 1
		       ? x->last_seq < w->begun || passed > 3 * (x->works.last - x->works.first)
		       : last && x->last_seq < w->begun;
}

void used_weight(struct used_weights *w, const struct timeline *t, uint64_t seq, uint32_t life)
{
	struct block_uses x;

	uses_of(&t->model, life, &x);
	if (!x.count || used_long_ago(t, seq, x.last_seq))
		return;
	w->begun = x.first_seq < w->begun ? x.first_seq : w->begun;
	w->newest = x.first_seq > w->newest ? x.first_seq : w->newest;
}

static struct used_weights weights_at(const struct timeline *t, const struct moment *mo)
{
	struct used_weights w = USED_WEIGHTS;

	FOR_BLOCKS (b, mo)
		if (b->category == CATEGORY_parameters && b->life)
			used_weight(&w, t, mo->seq, b->life - 1);
	return w;
}

/* Classes of a model that is left over. A KV cache might only wait for the next request, and a
 * buffer might belong to a model in use. */
#define TRAINED (OF_THE_MODEL & ~CLASS_BIT(buffers))

struct asked {
	const struct timeline *timeline;
	const struct moment *moment;
	bool models; /* only models that a whole step did not use */
	uint64_t refused;
	struct used_weights weights;
};

/* True if nothing uses the block after the moment. Fills in x. */
static bool is_used_up(const struct asked *a, const struct block *b, struct block_uses *x)
{
	const struct timeline *t = a->timeline;
	uint64_t seq = a->moment->seq;
	enum use_future future;

	if (!b->life || (a->models && !category_in(b->category, TRAINED)))
		return false;
	uses_of(&t->model, b->life - 1, x);
	future = uses_future(&t->model, a->moment, b->life - 1, a->refused);
	if (future == FUTURE_REFUSED && a->models)
		return used_no_more(t, seq, x, &a->weights, b->category == CATEGORY_parameters);
	return future != FUTURE_USED &&
	       ((future == FUTURE_OVER && !a->models) || used_long_ago(t, seq, x->last_seq));
}

struct holder *used_up_add(struct used_up *u, struct timeline *t, const struct block *b,
			   const struct block_uses *x)
{
	struct holder *h =
		holders_add(&u->holders, b->category, owners_find(&t->owners, b), b->size);
	size_t step = steps_at(&t->steps, x->last_seq);

	h->last_use = x->works.last > h->last_use ? x->works.last : h->last_use;
	u->step = step > u->step ? step : u->step;
	u->bytes += b->size;
	u->classes[b->category] += b->size;
	return h;
}

static void find_used_up(struct used_up *u, struct timeline *t, const struct snapshot *s,
			 bool models)
{
	const struct moment *mo = &s->moment;
	bool known = uses_complete(&t->model);
	struct asked a = { t, mo, models, uses_refused(&t->model, mo),
			   models ? weights_at(t, mo) : USED_WEIGHTS };
	struct block_uses x;

	*u = (struct used_up){ .model = &t->model,
			       .known = known,
			       .since = need_new((mo->count + 1) * sizeof(*u->since)) };
	for (size_t i = 0; i < mo->count && known; i++) {
		const struct block *b = &mo->blocks[i];

		if (!is_used_up(&a, b, &x))
			continue;
		u->since[i] = x.last_seq;
		used_up_add(u, t, b, &x)->before +=
			steps_at(&t->steps, b->seq) < steps_at(&t->steps, mo->seq) ? b->size : 0;
	}
	holders_sort(&u->holders);
}

void used_up_find(struct used_up *u, struct timeline *t, const struct snapshot *s)
{
	find_used_up(u, t, s, false);
}

void used_up_models(struct used_up *u, struct timeline *t, const struct snapshot *s)
{
	enum { SHARE = 100 }; /* less than one part in so many is not reported */

	find_used_up(u, t, s, true);
	if (u->bytes >= s->moment.bytes / SHARE)
		return;
	used_up_free(u);
	u->since = need_new((s->moment.count + 1) * sizeof(*u->since));
}

void used_up_at_end(struct used_up *u, struct timeline *t)
{
	size_t n = steps_number(&t->steps);
	struct snapshot shot;

	while (n && !t->steps.items[n].ended)
		n--;
	if (!n || t->device < 0)
		return;
	snapshot_take(&shot, t, t->steps.items[n].extent.last_seq);
	used_up_models(u, t, &shot);
	moment_free(&shot.moment);
}

void used_up_free(struct used_up *u)
{
	free(u->since);
	free(u->holders.items);
	*u = (struct used_up){ 0 };
}

const char *used_up_words(const struct used_up *u, char *buf, size_t room)
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

static bool line_row(void *ctx, size_t i, struct row_unused_line *row)
{
	const struct used_up *u = ctx;
	const struct holder *h = &u->holders.items[i];

	*row = (struct row_unused_line){ .class = h->category,
					 .owner = h->owner,
					 .bytes = h->bytes,
					 .blocks = h->blocks,
					 .last_use_ns = used_ns(u->model, h->last_use) };
	return true;
}

struct rows_unused_line used_up_rows(const struct used_up *u)
{
	return (struct rows_unused_line){ u->holders.count, line_row, (void *)u };
}
