/* SPDX-License-Identifier: Apache-2.0 */
#include "patterns.h"

#include "../../format/record.h"
#include "../base/arithmetic.h"
#include "../base/sorted.h"
#include "../classes/classify.h"
#include "../moments/series.h"
#include "../moments/timeline.h"

enum pattern { PATTERN_LATE, PATTERN_EARLY, PATTERN_IDLE, PATTERN_NEVER, PATTERN_LOST };

static const struct {
	const char *name, *words;
} names[] = {
	[PATTERN_LATE] = { "late", "freed late" },
	[PATTERN_EARLY] = { "early", "allocated early" },
	[PATTERN_IDLE] = { "idle", "idle for long" },
	[PATTERN_NEVER] = { "never", "never used" },
	[PATTERN_LOST] = { "lost", "overwritten unread" },
};

#define COPY_RATE 25e9 /* bytes a second in one direction: pinned memory behind PCIe 4.0 x16 */
#define SHARE	  100  /* a line is named for this part of the peak: there then, or in one block */

/* A gap of fewer pieces of work is none: a part of all that there are, within limits. */
enum { LATE_PART = 200, LATE_LEAST = 5, LATE_MOST = 20 };
enum { IDLE_PART = 50, IDLE_LEAST = 10, IDLE_MOST = 100 };

struct search {
	struct patterns *out;
	struct timeline *timeline;
	const struct model *model;
	uint64_t peak, peak_seq;
	struct use_refusals refusals;
	uint32_t late, idle; /* pieces of work that make a gap */
	uint32_t *loads;     /* works that may bring addresses from the host */
	size_t load_count, load_room;
};

/* A block of the device, from its birth to its end. */
struct found {
	uint32_t life;
	uint64_t size, born, died; /* events */
	uint64_t born_ns, died_ns;
	bool there; /* at the peak */
	bool ended; /* or the program did */
	struct block_uses uses;
};

static uint64_t seq_of(const struct search *s, uint32_t work)
{
	return uses_work(&s->model->uses, work)->seq;
}

static struct row_advise_pattern *row_of(struct search *s, enum pattern pattern,
					 const struct block *b)
{
	const struct owner owner = owners_find(&s->timeline->owners, b);
	struct patterns *p = s->out;

	FOR_EACH (struct row_advise_pattern, x, p->items, p->count)
		if (x->pattern == names[pattern].name && owners_same(&x->owner, &owner))
			return x;
	*need_item(p->items, p->count, p->room) =
		(struct row_advise_pattern){ .pattern = names[pattern].name,
					     .words = names[pattern].words,
					     .owner = owner,
					     .waits = pattern == PATTERN_IDLE,
					     .shortest_ns = UINT64_MAX };
	return &p->items[p->count - 1];
}

/* From one event to the other nothing happened with it. What a library keeps for its next call
 * waits for that call. */
static void add_to_pattern(struct search *s, enum pattern pattern, const struct found *l,
			   uint64_t bytes, uint64_t ns, bool at_peak)
{
	struct row_advise_pattern *x;
	struct block b;

	model_block(s->model, l->life, &b);
	if (classify(timeline_classifier(s->timeline), &b).category == CATEGORY_workspace)
		return;
	x = row_of(s, pattern, &b);
	x->blocks++;
	x->bytes += bytes;
	x->at_peak_bytes += at_peak ? l->size : 0;
	x->largest = arithmetic_most(x->largest, l->size);
	x->longest_ns = arithmetic_most(x->longest_ns, ns);
	x->shortest_ns = arithmetic_least(x->shortest_ns, ns);
}

static void look_at_uses(struct search *s, const struct found *l)
{
	const struct life_uses *x = &l->uses.works;
	uint64_t at = s->peak_seq;

	/* So many works lie between its birth and its first use, */
	if (x->first >= s->late && seq_of(s, x->first - s->late) > l->born &&
	    l->born > s->model->state_seq)
		add_to_pattern(s, PATTERN_EARLY, l, l->size, l->uses.first_ns - l->born_ns,
			       l->born <= at && at < l->uses.first_seq);
	if (l->uses.pause_ns && x->resume - x->pause - 1 >= s->idle)
		add_to_pattern(s, PATTERN_IDLE, l, l->size, l->uses.pause_ns,
			       seq_of(s, x->pause) <= at && at < seq_of(s, x->resume));
	/* or between its last use and its end. */
	if (x->last + s->late < s->model->uses.works.count &&
	    seq_of(s, x->last + s->late) <= l->died &&
	    uses_end(s->model, s->timeline->device, l->life, &s->refusals))
		add_to_pattern(s, PATTERN_LATE, l, l->size, l->died_ns - l->uses.last_ns,
			       l->uses.last_seq <= at && at < l->died);
}

/* A kernel can reach a block through an array of addresses, which came from the host: without a
 * copy in the block's life there is none. */
static bool is_beyond_reach(const struct search *s, const struct found *l)
{
	const struct uses *u = &s->model->uses;
	size_t work = SORTED_FIRST(u->works.count, i, seq_of(s, (uint32_t)i) <= l->born);
	size_t load = SORTED_FIRST(s->load_count, i, s->loads[i] < work);

	return work < u->works.count && seq_of(s, (uint32_t)work) <= l->died &&
	       (load == s->load_count || seq_of(s, s->loads[load]) > l->died);
}

/* False: it is none of the device's. */
static bool read_life(const struct search *s, uint32_t i, struct found *l)
{
	const struct lives *table = &s->model->lives;
	const struct lived x = lives_read(table, i);
	bool ended = x.until != LIVES_OPEN;

	if (x.born->device != s->timeline->device || !series_counts(s->model, x.born))
		return false;
	*l = (struct found){ .life = i,
			     .born = x.from,
			     .born_ns = lives_ns(table, &x.row->born),
			     .died = ended ? x.until : s->model->last_seq + 1,
			     .died_ns = ended ? lives_ns(table, &x.row->died) : s->model->last_ns,
			     .size = x.size,
			     .ended = ended || s->model->ended };
	l->there = l->born <= s->peak_seq && s->peak_seq < l->died;
	uses_of(s->model, i, &l->uses);
	return true;
}

/* Whether the work around its uses already excludes each pattern, as for most lives. */
static bool is_in_no_pattern(const struct search *s, uint32_t i)
{
	const struct lives *table = &s->model->lives;
	const struct life *row = lives_at(table, i);
	const struct life_uses *x = rows_at(&s->model->uses.lives, row->uses);
	bool late = x->last + s->late < s->model->uses.works.count;
	bool idle = x->resume && x->resume - x->pause - 1 >= s->idle;

	return x->count && !idle &&
	       (x->first < s->late ||
		seq_of(s, x->first - s->late) <= lives_seq(table, &row->born)) &&
	       (!late || (row->died.position &&
			  seq_of(s, x->last + s->late) > lives_seq(table, &row->died)));
}

static void look_at_life(struct search *s, uint32_t i)
{
	const struct use_lost *lost = map_find(&s->model->uses.lost, i + 1ull);
	struct found l;

	if ((!lost && is_in_no_pattern(s, i)) || !read_life(s, i, &l))
		return;
	if (lost && l.uses.whole)
		add_to_pattern(s, PATTERN_LOST, &l, lost->bytes, lost->ns, l.there);
	if (l.uses.count)
		look_at_uses(s, &l);
	else if (l.uses.whole && l.born > s->model->state_seq && l.ended && is_beyond_reach(s, &l))
		add_to_pattern(s, PATTERN_NEVER, &l, l.size, l.died_ns - l.born_ns, l.there);
}

static void find_loads(struct search *s)
{
	const struct uses *u = &s->model->uses;

	for (uint32_t i = 1; i < u->works.count; chunks_rest(s->model->lives.pool), i++) {
		const struct use_kind *k = uses_kind(u, i);

		if (k->kind == GMT_GRAPH_LAUNCH || k->transfer == GMT_TRANSFER_TARGET)
			*need_item(s->loads, s->load_count, s->load_room) = i;
	}
}

COMPARE(by_bytes, struct row_advise_pattern,
	ORDER(y->at_peak_bytes, x->at_peak_bytes) ?: ORDER(y->largest, x->largest)
		?: ORDER(y->bytes, x->bytes) ?: strcmp(x->pattern, y->pattern))

static void choose(struct search *s)
{
	struct patterns *p = s->out;
	size_t n = 0;

	FOR_EACH (struct row_advise_pattern, x, p->items, p->count) {
		uint64_t bytes = arithmetic_most(x->at_peak_bytes, x->largest);

		if (bytes * SHARE < s->peak)
			continue;
		x->copy_ns = (uint64_t)(2e9 * (double)bytes / COPY_RATE);
		x->fits = x->copy_ns < x->shortest_ns;
		x->has_copy_ns = x->has_fits = x->waits;
		x->copy = !x->waits ? "" : x->fits ? "fits" : "too slow";
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
			    .late = (uint32_t)arithmetic_least(
				    arithmetic_most(works / LATE_PART, LATE_LEAST), LATE_MOST),
			    .idle = (uint32_t)arithmetic_least(
				    arithmetic_most(works / IDLE_PART, IDLE_LEAST), IDLE_MOST) };

	*p = (struct patterns){ .known = uses_complete(m) };
	if (!p->known)
		return;
	find_loads(&s);
	for (uint32_t i = 0; i < m->lives.rows.count; i++) {
		chunks_rest(m->lives.pool);
		look_at_life(&s, i);
	}
	choose(&s);
	free(s.loads);
}
