/* SPDX-License-Identifier: Apache-2.0 */
#include "patterns.h"

#include "../../format/record.h"
#include "../base/arithmetic.h"
#include "../base/sorted.h"
#include "../classes/classify.h"
#include "../moments/series.h"
#include "../moments/timeline.h"

#define SHARE 100 /* a line is named for this part of the peak: there then, or in one block */

/* A gap of fewer pieces of work is none: a part of all that there are, within limits. */
#define LATE_PART  200
#define LATE_LEAST 5
#define LATE_MOST  20
#define IDLE_PART  50
#define IDLE_LEAST 10
#define IDLE_MOST  100

struct search {
	struct patterns *out;
	struct timeline *timeline;
	const struct model *model;
	uint64_t peak, peak_seq;
	uint64_t asked, refused; /* the first refusal from that event on */
	uint32_t late, idle;	 /* pieces of work that make a gap */
	uint32_t *loads;	 /* works that may bring addresses from the host */
	size_t load_count, load_room;
};

/* A block of the device, from its birth to its end. */
struct lived {
	uint32_t life;
	uint64_t size, born, died; /* events */
	uint64_t born_ns, died_ns;
	bool ended;
	struct block_uses uses;
};

static uint64_t seq_of(const struct search *s, uint32_t work)
{
	return uses_work(&s->model->uses, work)->seq;
}

/* The first work after that event. */
static uint32_t work_after(const struct search *s, uint64_t seq)
{
	uint32_t low = 1, high = s->model->uses.works.count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (seq_of(s, middle) <= seq)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint32_t part_of(uint32_t works, uint32_t part, uint32_t least, uint32_t most)
{
	uint32_t n = works / part;

	return n < least ? least : n > most ? most : n;
}

static struct pattern_line *line_of(struct search *s, enum pattern pattern, const struct block *b)
{
	const struct owner owner = owners_find(&s->timeline->owners, b);
	struct patterns *p = s->out;

	FOR_EACH (struct pattern_line, x, p->items, p->count)
		if (x->pattern == pattern && owners_same(&x->owner, &owner))
			return x;
	*need_item(p->items, p->count, p->room) =
		(struct pattern_line){ .pattern = pattern, .owner = owner, .shortest = UINT64_MAX };
	return &p->items[p->count - 1];
}

/* From one event to the other nothing happened with it. What a library keeps for its next call
 * waits for that call. */
static void add(struct search *s, enum pattern pattern, const struct lived *l, uint64_t bytes,
		uint64_t ns, bool at_peak)
{
	struct pattern_line *x;
	struct block b;

	model_block(s->model, l->life, &b);
	if (classify(timeline_classifier(s->timeline), &b).category == CATEGORY_workspace)
		return;
	x = line_of(s, pattern, &b);
	x->blocks++;
	x->bytes += bytes;
	x->at_peak += at_peak ? l->size : 0;
	x->largest = arithmetic_most(x->largest, l->size);
	x->longest = arithmetic_most(x->longest, ns);
	x->shortest = ns < x->shortest ? ns : x->shortest;
}

static bool is_over(struct search *s, const struct lived *l)
{
	const struct moment at = { .device = s->timeline->device, .seq = l->uses.last_seq };

	if (at.seq < s->asked || at.seq > s->refused) {
		s->asked = at.seq;
		s->refused = uses_refused(s->model, &at);
	}
	return uses_future(s->model, &at, l->life, s->refused) == FUTURE_OVER;
}

static void look_at_uses(struct search *s, const struct lived *l)
{
	const struct life_uses *x = &l->uses.works;
	uint64_t at = s->peak_seq;

	if (x->first - work_after(s, l->born) >= s->late && l->born > s->model->state_seq)
		add(s, PATTERN_EARLY, l, l->size, l->uses.first_ns - l->born_ns,
		    l->born <= at && at < l->uses.first_seq);
	if (l->uses.pause_ns && x->resume - x->pause - 1 >= s->idle)
		add(s, PATTERN_IDLE, l, l->size, l->uses.pause_ns,
		    seq_of(s, x->pause) <= at && at < seq_of(s, x->resume));
	if (work_after(s, l->died) - x->last - 1 >= s->late && is_over(s, l))
		add(s, PATTERN_LATE, l, l->size, l->died_ns - l->uses.last_ns,
		    l->uses.last_seq <= at && at < l->died);
}

/* A kernel can reach a block through an array of addresses, which came from the host: without a
 * copy in the block's life there is none. */
static bool is_beyond_reach(const struct search *s, const struct lived *l)
{
	uint32_t from = work_after(s, l->born), to = work_after(s, l->died);

	return from < to && !ANY_OF(x, s->loads, s->load_count, *x >= from && *x < to);
}

static void look_at_life(struct search *s, uint32_t i)
{
	const struct lives *table = &s->model->lives;
	const struct life *life = lives_at(table, i);
	const struct position *p = lives_position(table, life->born.position);
	struct lived l = { .life = i,
			   .born = lives_seq(table, &life->born),
			   .born_ns = lives_ns(table, &life->born),
			   .died = s->model->last_seq,
			   .died_ns = s->model->last_ns,
			   .size = lives_request(table, life)->size,
			   .ended = life->died.position };

	if (p->device != s->timeline->device || !series_counts(s->model, p))
		return;
	uses_of(s->model, i, &l.uses);
	if (l.ended) {
		l.died = lives_seq(table, &life->died);
		l.died_ns = lives_ns(table, &life->died);
	}
	if (l.uses.count)
		look_at_uses(s, &l);
	else if (l.uses.known && l.born > s->model->state_seq && (l.ended || s->model->ended) &&
		 is_beyond_reach(s, &l))
		add(s, PATTERN_NEVER, &l, l.size, l.died_ns - l.born_ns,
		    l.born <= s->peak_seq && s->peak_seq < l.died);
}

static void look_at_lost(struct search *s, const struct use_lost *x)
{
	const struct lives *table = &s->model->lives;
	const struct life *life = lives_at(table, x->life);
	const struct position *p = lives_position(table, life->born.position);
	uint64_t died = lives_seq(table, &life->died), born = lives_seq(table, &life->born);
	const struct lived l = { .life = x->life, .size = lives_request(table, life)->size };

	if (p->device == s->timeline->device && series_counts(s->model, p))
		add(s, PATTERN_LOST, &l, x->bytes, x->ns,
		    born <= s->peak_seq && (!life->died.position || s->peak_seq < died));
}

static void find_loads(struct search *s)
{
	const struct uses *u = &s->model->uses;

	for (uint32_t i = 1; i < u->works.count; i++) {
		const struct use_kind *k = uses_kind(u, i);

		if (k->kind == GMT_GRAPH_LAUNCH || k->transfer == GMT_TRANSFER_TARGET)
			*need_item(s->loads, s->load_count, s->load_room) = i;
	}
}

COMPARE(by_bytes, struct pattern_line,
	ORDER(y->at_peak, x->at_peak) ?: ORDER(y->largest, x->largest) ?: ORDER(y->bytes, x->bytes)
		?: ORDER(x->pattern, y->pattern))

static void choose(struct search *s)
{
	struct patterns *p = s->out;
	size_t n = 0;

	for (size_t i = 0; i < p->count; i++) {
		struct pattern_line *x = &p->items[i];
		uint64_t bytes = arithmetic_most(x->at_peak, x->largest);

		if (bytes * SHARE < s->peak)
			continue;
		if (x->pattern == PATTERN_IDLE)
			x->copy_ns = (uint64_t)(2e9 * (double)bytes / PATTERNS_COPY_RATE);
		p->items[n++] = *x;
	}
	p->count = n;
	SORT(p->items, p->count, by_bytes);
}

void patterns_find(struct patterns *p, struct timeline *t)
{
	const struct model *m = &t->model;
	uint32_t works = m->uses.works.count;
	size_t step;
	const struct extent *peak = timeline_peak(t, &step);
	struct search s = { .out = p,
			    .timeline = t,
			    .model = m,
			    .peak = peak->peak,
			    .peak_seq = peak->peak_seq,
			    .asked = UINT64_MAX,
			    .late = part_of(works, LATE_PART, LATE_LEAST, LATE_MOST),
			    .idle = part_of(works, IDLE_PART, IDLE_LEAST, IDLE_MOST) };

	*p = (struct patterns){ .known = uses_complete(m) };
	if (!p->known)
		return;
	find_loads(&s);
	for (uint32_t i = 0; i < m->lives.rows.count; i++) {
		chunks_rest(m->lives.pool);
		look_at_life(&s, i);
	}
	FOR_EACH (const struct use_lost, x, m->uses.lost.items, m->uses.lost.count)
		look_at_lost(&s, x);
	choose(&s);
	free(s.loads);
}

void patterns_free(struct patterns *p)
{
	free(p->items);
}
