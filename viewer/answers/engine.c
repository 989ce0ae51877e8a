/* SPDX-License-Identifier: Apache-2.0 */
#include "engine.h"

#include "../base/arithmetic.h"
#include "../base/human.h"
#include "../moments/snapshot.h"
#include "columns.h"
#include "holders.h"

#define PASSES_LEAST 2 /* passes that a cache of fixed size outlives */
#define CACHE_SHARE \
	100 /* in a program that trains, a cache is at least one part in so many of all blocks */

static const struct {
	const char *name, *label;
} parts[] = {
#define PART(name, label) { #name, label },
#include "engine_parts.def"
};

static enum engine_part part_of(struct timeline *t, const struct block *b, bool trains)
{
	static const enum engine_part of[CATEGORIES] = {
#define CATEGORY(name, words, colour, letter, term, level, part, traits) ENGINE_##part,
#include "../classes/categories.def"
	};
	struct verdict v = classify(timeline_classifier(t), b);

	if (trains && verdict_is_leaf(v))
		return ENGINE_trained;
	return of[v.category];
}

/* A moment and its bytes by part of the device. */
struct sorting {
	struct timeline *timeline;
	struct moment moment;
	struct block *graphs; /* pieces of the graphs' pools: addr, size */
	size_t count, room;
	uint64_t bytes[ENGINE_PARTS];
	struct holders lines; /* with the part in place of the class */
};

/* True if several graphs were captured in the forward pass that made the segment. */
static bool is_for_pieces(const struct model *m, const struct block *segment)
{
	const struct model_device *d = &m->devices[segment->device];
	const struct position *born = model_born(m, segment);

	return born->stage == STAGE_FORWARD &&
	       SUM_OF(x, d->captures, d->capture_count, *x == born->forwards) > 1;
}

static void add_pool_of_graphs(void *ctx, const struct room_piece *p)
{
	struct sorting *s = ctx;
	enum engine_part part;
	enum pool_kind kind = p->pool ? pool_kind(p->pool, &s->timeline->owners, p->segment->stack)
				      : POOL_unknown;

	if (kind != POOL_cuda_graphs && kind != POOL_compiled_graphs)
		return;
	part = is_for_pieces(&s->timeline->model, p->segment) ? ENGINE_graphs_of_pieces
							      : ENGINE_cuda_graphs;
	*need_item(s->graphs, s->count, s->room) =
		(struct block){ .addr = p->segment->addr, .size = p->bytes };
	s->bytes[part] += p->bytes;
	holders_add(&s->lines, part, pool_owner(&s->timeline->owners, p->segment), p->bytes);
}

static void add_block(struct sorting *s, const struct block *b)
{
	struct owner owner = owners_find(&s->timeline->owners, b);
	enum engine_part part = part_of(s->timeline, b, s->timeline->model.spans.trains);

	if (ANY_OF(x, s->graphs, s->count, b->addr - x->addr < x->size))
		return;
	if ((part == ENGINE_weights || part == ENGINE_other) && owner.function &&
	    strcasestr(owner.function, "lora"))
		part = ENGINE_lora;
	s->bytes[part] += b->size;
	holders_add(&s->lines, part, owner, b->size);
}

/* Adds memory outside of blocks: the rest of the cache and of the device. */
static void add_rest(struct sorting *s)
{
	const struct moment *mo = &s->moment;
	struct holders libraries = holders_of_libraries(mo, &s->timeline->owners);
	uint64_t blocks = SUM_OF(x, s->bytes, ENGINE_PARTS, *x);
	uint64_t network = SUM_OF(x, libraries.items, libraries.count,
				  strcasestr(x->inside, "nccl") ? x->bytes : 0);

	s->bytes[ENGINE_communication] += network;
	s->bytes[ENGINE_cached] = arithmetic_beyond(mo->reserved, blocks);
	s->bytes[ENGINE_libraries] = arithmetic_beyond(mo->driver, mo->reserved + network);
	s->bytes[ENGINE_context] = mo->context;
	s->bytes[ENGINE_free] = arithmetic_beyond(mo->total_bytes, mo->driver + mo->context);
	free(libraries.items);
}

static void sort_moment(struct sorting *s, uint64_t seq)
{
	s->moment = (struct moment){ .device = s->timeline->device, .seq = seq, .framework = true };
	model_take(&s->timeline->model, &s->moment);
	room_pieces(&s->timeline->model, &s->moment, add_pool_of_graphs, s);
	FOR_BLOCKS (b, &s->moment)
		add_block(s, b);
	add_rest(s);
	holders_sort(&s->lines);
	free(s->graphs);
}

static void sorting_free(struct sorting *s)
{
	moment_free(&s->moment);
	free(s->lines.items);
}

/* The KV cache's blocks in a pass, and how long they and the weights lived. */
struct kept {
	uint64_t bytes;		 /* of the cache */
	uint64_t passing;	 /* of blocks of the class that do not outlive enough passes */
	bool used;		 /* a block of the class was alive in the next pass */
	uint64_t first, last;	 /* events of the cache's first and last birth */
	uint64_t died, died_ns;	 /* first death of a block of cache or weights */
	const struct block *one; /* the cache's first block */
};

static bool outlives(const struct model *m, const struct block *b, uint32_t passes)
{
	uint32_t end = b->died_seq ? model_died(m, b)->forwards : m->spans.forwards;

	return end >= model_born(m, b)->forwards + passes;
}

static void look_at_kept(struct kept *k, const struct model *m, const struct block *b,
			 enum engine_part part)
{
	if (part == ENGINE_kv_cache && outlives(m, b, 1))
		k->used = true;
	if (part == ENGINE_kv_cache && !outlives(m, b, PASSES_LEAST)) {
		k->passing += b->size;
		return;
	}
	if (part == ENGINE_kv_cache) {
		k->bytes += b->size;
		k->last = b->seq > k->last ? b->seq : k->last;
		if (b->seq < k->first) {
			k->first = b->seq;
			k->one = b;
		}
	}
	if (b->died_seq && b->died_seq < k->died) {
		k->died = b->died_seq;
		k->died_ns = b->died_ns;
	}
}

static struct kept find_kept(struct timeline *t, const struct moment *pass)
{
	struct kept k = { .first = UINT64_MAX, .died = t->model.last_seq + 1 };

	FOR_BLOCKS (b, pass) {
		enum engine_part part = part_of(t, b, false);

		if (part == ENGINE_kv_cache || part == ENGINE_weights)
			look_at_kept(&k, &t->model, b, part);
	}
	return k;
}

/* Most bytes of work in a pass before the cache was made, with workspaces that stayed. */
static uint64_t highest_pass(const struct timeline *t, const struct sorting *then, uint64_t first)
{
	const struct span *most =
		GREATEST_OF(x, t->model.spans.items, t->model.spans.count,
			    x->extent.peak_seq < first && span_is_forward(x), x->extent.peak);
	uint64_t stays =
		BYTES_OF(b, &then->moment,
			 b->seq < first && part_of(then->timeline, b, false) != ENGINE_work);

	return most ? arithmetic_beyond(most->extent.peak, stays) : 0;
}

static void look_at_plan(struct engine *e, struct timeline *t, const struct kept *k)
{
	const struct position *born = model_born(&t->model, k->one);
	struct sorting then = { .timeline = t };

	e->planned = born->forwards && born->stage == STAGE_OUTSIDE;
	if (!e->planned)
		return;
	sort_moment(&then, k->last);
	memcpy(e->then, then.bytes, sizeof(e->then));
	e->cache_ns = then.moment.time_ns;
	e->then[ENGINE_work] = highest_pass(t, &then, k->first);
	e->then[ENGINE_free] = arithmetic_beyond(e->then[ENGINE_free] + then.bytes[ENGINE_work],
						 e->then[ENGINE_work]);
	sorting_free(&then);
}

static void find_owners(struct engine *e, const struct holders *lines)
{
	for (unsigned p = 0; p < ENGINE_PARTS; p++)
		if (!e->now[p] || !e->owners[p].function)
			e->owners[p] = (struct owner){ .function = "", .file = "" };
	for (size_t i = lines->count; i-- > 0;)
		e->owners[lines->items[i].category] = lines->items[i].owner;
}

/* Takes the peak of the last pass, because a model might be converted before the first one. */
static void take_last_pass(struct timeline *t, struct moment *mo)
{
	const struct extent *last = &t->steps.items[steps_number(&t->steps)].extent;

	*mo = (struct moment){ .device = t->device,
			       .seq = last->peak_seq,
			       .time_ns = last->peak_ns,
			       .framework = true };
	model_take(&t->model, mo);
}

/* Sums up a moment by part and finds the lines that hold most. Returns the moment's time in ns. */
static uint64_t sort_into(struct engine *e, struct timeline *t, uint64_t seq,
			  uint64_t bytes[ENGINE_PARTS])
{
	struct sorting s = { .timeline = t };
	uint64_t time_ns;

	sort_moment(&s, seq);
	memcpy(bytes, s.bytes, sizeof(s.bytes));
	find_owners(e, &s.lines);
	e->total = s.moment.total_bytes;
	time_ns = s.moment.time_ns;
	sorting_free(&s);
	return time_ns;
}

/* The context grows when code is loaded, which only the device's next sample shows. */
static void sample_next(struct engine *e, const struct timeline *t, uint64_t seq)
{
	struct levels_cursor c;
	uint64_t was = 0, more;

	for (levels_first(&c, &t->model.lives.levels); c.now; levels_next(&c)) {
		if (c.now->device != t->device)
			continue;
		if (c.now->seq > seq && c.now->free_bytes != was)
			break;
		was = c.now->free_bytes;
	}
	more = c.now ? arithmetic_beyond(c.now->context, e->beside[ENGINE_context]) : 0;
	e->beside[ENGINE_context] += more;
	e->beside[ENGINE_free] = arithmetic_beyond(e->beside[ENGINE_free], more);
}

static void make_account(struct engine *e, struct timeline *t, const struct moment *pass)
{
	const struct model_device *asleep = &t->model.devices[t->device];
	struct kept k = find_kept(t, pass);

	if (!k.bytes || k.passing > k.bytes)
		return;
	sort_into(e, t, k.died - 1, e->now);
	e->time_ns = k.died_ns ? k.died_ns : t->model.last_ns;
	if (e->now[ENGINE_kv_cache] < k.bytes) /* the cache sleeps at that moment */
		e->time_ns = sort_into(e, t, pass->seq, e->now);
	look_at_plan(e, t, &k);
	e->sleeps = asleep->asleep_most;
	if (e->sleeps) {
		e->beside_ns = sort_into(e, t, asleep->asleep_seq, e->beside);
		sample_next(e, t, asleep->asleep_seq);
	}
}

/* ---- a program that also trains ---- */

static bool span_serves(const struct span *s)
{
	return span_is_forward(s) && !s->kept;
}

/* Bytes of KV caches at a moment, and of all blocks. 0 if the next pass had no block of the caches,
 * because such a pass serves nobody. */
static uint64_t cache_at(struct timeline *t, uint64_t seq, uint64_t *all)
{
	struct moment mo = { .device = t->device, .seq = seq, .framework = true };
	struct kept k;

	model_take(&t->model, &mo);
	k = find_kept(t, &mo);
	*all = mo.bytes;
	moment_free(&mo);
	return k.used ? k.bytes + k.passing : 0;
}

/* The event for the account: the peak of the highest pass, or that of the cache if it grows and the
 * highest pass has less than half of it. 0 if the cache is too small. */
static uint64_t serving_moment(struct timeline *t)
{
	struct extent highest[CATEGORIES];
	const struct extent *cache = &highest[CATEGORY_kv_cache];
	const struct spans *s = &t->model.spans;
	const struct span *highest_pass =
		GREATEST_OF(x, s->items, s->count, span_serves(x), x->extent.peak);
	uint64_t all;

	if (!highest_pass)
		return 0;
	highest_find(highest, t);
	if (!cache->peak || CACHE_SHARE * cache_at(t, cache->peak_seq, &all) < all)
		return 0;
	return 2 * cache_at(t, highest_pass->extent.peak_seq, &all) < cache->peak
		       ? cache->peak_seq
		       : highest_pass->extent.peak_seq;
}

static void find_both(struct engine *e, struct timeline *t)
{
	const struct spans *s = &t->model.spans;
	const struct span *learns =
		GREATEST_OF(x, s->items, s->count,
			    x->phase == PHASE_BACKWARD || x->phase == PHASE_OPTIMIZER ||
				    (x->phase == PHASE_FORWARD && x->kept),
			    x->extent.peak);
	uint64_t serves = learns ? serving_moment(t) : 0;

	if (!serves)
		return;
	e->trains = true;
	e->beside_ns = sort_into(e, t, learns->extent.peak_seq, e->beside);
	e->time_ns = sort_into(e, t, serves, e->now);
}

void engine_find(struct engine *e, struct timeline *t)
{
	struct moment pass;

	*e = (struct engine){ 0 };
	if (!t->framework || !steps_number(&t->steps))
		return;
	if (t->model.spans.trains) {
		find_both(e, t);
		return;
	}
	take_last_pass(t, &pass);
	make_account(e, t, &pass);
	moment_free(&pass);
}

static bool part_row(void *ctx, size_t i, struct row_engine_part *row)
{
	const struct engine *e = ctx;

	*row = (struct row_engine_part){ .part = parts[i].name,
					 .bytes = e->now[i],
					 MAYBE_THERE(planned_bytes, e->planned, e->then[i]),
					 .owner = e->owners[i],
					 MAYBE_THERE(training_bytes, e->trains, e->beside[i]),
					 MAYBE_THERE(asleep_bytes, e->sleeps, e->beside[i]),
					 .label = parts[i].label,
					 .held = e->owners[i].function[0] };
	return e->now[i] || e->then[i] || e->beside[i];
}

/* The share of the device that was in use when the cache had been made. */
static double share_of_plan(const struct engine *e)
{
	return e->total ? 1 - (double)e->then[ENGINE_free] / (double)e->total : 0;
}

bool engine_document(const struct engine *e, struct row_engine *row)
{
	*row = (struct row_engine){ .total_bytes = e->total,
				    .time_ns = e->time_ns,
				    MAYBE_THERE(planned_ns, e->planned, e->cache_ns),
				    MAYBE_THERE(training_ns, e->trains, e->beside_ns),
				    MAYBE_THERE(asleep_ns, e->sleeps, e->beside_ns),
				    MAYBE_THERE(planned_share, e->planned, share_of_plan(e)),
				    .parts = { ENGINE_PARTS, part_row, (void *)e } };
	return e->total;
}

void engine_text(const struct engine *e, const struct timeline *t, struct emit *out)
{
	struct text_column columns[] = {
		TEXT_COLUMN("part of the device", engine_part_label, 2, -24),
		TEXT_COLUMN(e->planned ? "planned" : "", engine_part_planned_bytes, 1, 9),
		TEXT_COLUMN(e->trains	 ? "serving"
			    : e->planned ? "later"
					 : "bytes",
			    engine_part_bytes, 1, 9),
		TEXT_COLUMN("share", engine_part_bytes, 1, 5, .style = COLUMN_SHARE,
			    .all = e->total),
		TEXT_COLUMN(e->trains	? "training"
			    : e->sleeps ? "asleep"
					: "",
			    engine_part_asleep_bytes, 1, 9),
		TEXT_COLUMN("mostly allocated at", engine_part_owner, 2, -22, .room = 22,
			    .when = AT_engine_part_held),
	};
	struct rows_engine_part rows = { ENGINE_PARTS, part_row, (void *)e };
	char a[HUMAN_MAX], when[MOMENTS_WHEN], note[256];

	if (!e->total)
		return;
	if (e->trains)
		columns[4].member = AT_engine_part_training_bytes;
	emit_title(out, "%s on device %d, %s%s",
		   e->trains ? "Serving beside training" : "A serving engine", t->device,
		   human_bytes(a, e->total),
		   moments_when(&t->model, t->model.state_seq + 1, e->time_ns, when, sizeof(when)));
	emit_columns(out, engine_part, &rows, columns, 0);
	snprintf(note, sizeof(note),
		 "planned: in use when the KV cache was made, and the most that a pass before it "
		 "took. That is %s, %.1f %% of the device (compare gpu_memory_utilization).",
		 human_bytes(a, e->total - e->then[ENGINE_free]), 100 * share_of_plan(e));
	if (e->trains)
		strcpy(note, "serving: with its KV cache, the most in a pass without gradients. "
			     "training: the most in the others.");
	if (e->planned || e->trains)
		emit_paragraph(out, "  ", "  ", note);
	emit_line(out, "%s", "");
}
