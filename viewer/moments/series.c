/* SPDX-License-Identifier: Apache-2.0 */
#include "series.h"

#include "../../format/record.h"

#include <sys/mman.h>

/* The class and state of a life after the current event. */
struct standing {
	uint8_t class; /* 1 + its class, 0 = not wanted or dead, as most lives */
	uint8_t state; /* enum life_state */
};

struct touched {
	uint32_t life;
	struct standing before;
};

struct run {
	const struct series *series;
	const struct series_sink *sink;
	const struct lives *lives;
	struct lives_walk walk;
	struct standing *now; /* by life; untouched pages are 0 and take no memory */
	size_t row;	      /* row of s->same with the current birth, or the next */
	uint8_t *same;	      /* 1 + class, by life of a step and by state; 0 = not computed yet */
	struct touched *touched; /* by the current event */
	size_t touched_count, touched_room;
	size_t moment; /* index of the first that is not before the event */
	struct levels_cursor levels;
	uint32_t mark; /* row of the next mark */
	struct series_device devices[MODEL_DEVICES];
	struct series_event event;
	uint32_t undated; /* 1 + the life whose death dates the event, 0 = its time is known */
};

bool series_counts(const struct model *m, const struct position *born)
{
	return born->counts && (born->layer == LIFE_BLOCK) == m->devices[born->device].framework;
}

struct verdict series_verdict(struct classifier *c, struct model *m, uint32_t life, unsigned state,
			      struct block *b)
{
	model_block(m, life, b);
	b->state = (uint16_t)state;
	return classify(c, b);
}

/* The row of equal steps at the current birth, or the next one; NULL: none. */
static const struct repeat *row_of_births(const struct run *r)
{
	const struct repeats *same = r->series->same;

	return same && r->row < same->count ? &same->items[r->row] : NULL;
}

static void follow_rows(struct run *r, uint32_t born)
{
	const struct repeat *row = row_of_births(r);

	if (!row || born < row->life)
		return;
	if (born >= row->known_life) {
		free(r->same);
		r->same = NULL;
		r->row++;
	} else if (!r->same) {
		r->same = need_new((size_t)row->lives * LIFE_STATES);
	}
}

/* The place of the class that a life shares with its twins, or NULL. */
static uint8_t *class_of_twins(struct run *r, uint32_t life, unsigned state)
{
	const struct repeat *row = row_of_births(r);

	if (!r->same || life < row->life || life >= row->known_life)
		return NULL;
	return &r->same[(size_t)((life - row->life) % row->lives) * LIFE_STATES + state];
}

static enum category class_of_life(struct run *r, uint32_t life, unsigned state)
{
	uint8_t *twins = class_of_twins(r, life, state);
	enum category found;
	struct block b;

	if (twins && *twins)
		return *twins - 1;
	found = series_verdict(r->series->classifier, r->series->model, life, state, &b).category;
	if (twins)
		*twins = 1 + found;
	return found;
}

static void date_event(struct run *r)
{
	if (r->undated)
		r->event.time_ns = lives_ns(r->lives, &lives_at(r->lives, r->undated - 1)->died);
	r->undated = 0;
}

static void tell_change(struct run *r, enum series_kind kind, uint32_t life, unsigned category,
			int64_t bytes)
{
	const struct life *row = lives_at(r->lives, life);

	date_event(r);
	r->sink->change(r->sink->ctx,
			&(struct series_change){
				.seq = r->event.seq,
				.time_ns = r->event.time_ns,
				.life = life,
				.device = lives_position(r->lives, row->born.position)->device,
				.kind = kind,
				.category = category,
				.state = r->now[life].state,
				.bytes = bytes,
			});
}

/* The first of the moments that is not before the event, NULL: none. Events come in order. */
static const uint64_t *next_moment(struct run *r)
{
	const struct series *s = r->series;

	while (r->moment < s->moment_count && s->moments[r->moment] < r->event.seq)
		r->moment++;
	return r->moment < s->moment_count ? &s->moments[r->moment] : NULL;
}

static bool is_there_at_a_moment(struct run *r, const struct life *life)
{
	const struct series *s = r->series;
	const uint64_t *moment;

	if (!s->moment_count || (s->since && r->event.seq > s->since))
		return true;
	moment = next_moment(r);
	return moment && (!life->died.position || lives_seq(r->lives, &life->died) > *moment);
}

/* Skips a run of lives that are all dead before the next moment, as most in a long recording.
 * False: none was skipped. */
static bool skip_births(struct run *r, uint32_t i)
{
	const struct series *s = r->series;
	const uint64_t *moment;
	uint32_t end;

	if (i % LIVES_RUN || !s->moment_count || r->sink->life || r->sink->event)
		return false;
	moment = next_moment(r);
	if (!moment)
		return false;
	end = lives_skip(r->lives, i, s->since && s->since < *moment ? s->since : *moment);
	if (end == i)
		return false;
	lives_walk_skip(&r->walk, end);
	return true;
}

static bool is_left_out(const struct run *r, const struct life *life)
{
	const struct repeats *leave = r->series->leave;
	uint64_t seq = leave && leave->count ? lives_seq(r->lives, &life->born) : 0;
	const struct repeat *at = seq ? repeats_at(leave, seq) : NULL;

	return at && seq < at->known;
}

static bool is_wanted(struct run *r, const struct life *life, const struct position *p)
{
	const struct series *s = r->series;

	return !is_left_out(r, life) && r->sink->change &&
	       (s->device < 0 || p->device == s->device) && series_counts(s->model, p) &&
	       is_there_at_a_moment(r, life);
}

/* Whether a life takes memory of the device by itself, not as a block inside a segment. */
static bool is_driver(const struct position *p)
{
	return p->counts && (p->layer != LIFE_BLOCK || p->memory == GMT_MEM_ASYNC);
}

static int64_t size_of_life(const struct run *r, const struct life *life)
{
	return (int64_t)lives_request(r->lives, life)->size;
}

static void born(struct run *r, uint32_t i)
{
	const struct life *life = lives_at(r->lives, i);
	const struct position *p;

	if (skip_births(r, i))
		return;
	follow_rows(r, i);
	p = lives_position(r->lives, life->born.position);
	if (is_driver(p))
		r->devices[p->device].driver += (uint64_t)size_of_life(r, life);
	if (r->sink->life)
		r->sink->life(r->sink->ctx, i, false);
	if (!is_wanted(r, life, p))
		return;
	r->now[i].class = (uint8_t)(1 + class_of_life(r, i, 0));
	tell_change(r, SERIES_BORN, i, r->now[i].class - 1u, size_of_life(r, life));
}

static bool is_asleep(struct standing now)
{
	return now.state & LIFE_ASLEEP;
}

static void died(struct run *r, uint32_t i)
{
	const struct life *life = lives_at(r->lives, i);
	const struct position *p;

	if (!r->now[i].class && !r->sink->life && !r->sink->event)
		return;
	p = lives_position(r->lives, life->born.position);
	if (is_driver(p))
		r->devices[p->device].driver -= (uint64_t)size_of_life(r, life);
	if (r->sink->life)
		r->sink->life(r->sink->ctx, i, true);
	if (!r->now[i].class)
		return;
	tell_change(r, SERIES_DIED, i, r->now[i].class - 1u,
		    is_asleep(r->now[i]) ? 0 : -size_of_life(r, life));
	r->now[i] = (struct standing){ 0 };
}

/* Changes the state of a life. Its class is computed after all changes of the event. */
static void touch(struct run *r, uint32_t i, enum life_change change)
{
	struct standing *now = &r->now[i];

	if (!now->class)
		return;
	if (r->sink->said)
		r->sink->said(r->sink->ctx, i, change, r->event.seq);
	if (!r->touched_count || r->touched[r->touched_count - 1].life != i) {
		*need_item(r->touched, r->touched_count, r->touched_room) =
			(struct touched){ i, *now };
	}
	now->state = (uint8_t)lives_state(now->state, change);
}

static void settle_series(struct run *r, const struct touched *t)
{
	struct standing *now = &r->now[t->life];
	unsigned before = now->class, class;
	int64_t size = size_of_life(r, lives_at(r->lives, t->life));

	if (!before || (before == t->before.class && now->state == t->before.state))
		return;
	class = 1 + class_of_life(r, t->life, now->state);
	if (is_asleep(t->before) || is_asleep(*now)) {
		now->class = (uint8_t) class;
		if (!is_asleep(t->before))
			tell_change(r, SERIES_LEFT, t->life, before - 1, -size);
		else if (!is_asleep(*now))
			tell_change(r, SERIES_JOINED, t->life, class - 1, size);
		return;
	}
	if (class == before) {
		tell_change(r, SERIES_STATE, t->life, class - 1, 0);
		return;
	}
	tell_change(r, SERIES_LEFT, t->life, before - 1, -size);
	now->class = (uint8_t) class;
	tell_change(r, SERIES_JOINED, t->life, class - 1, size);
}

static const struct lives_mark *next_mark(const struct run *r)
{
	return r->mark < r->lives->marks.count ? rows_at(&r->lives->marks, r->mark) : NULL;
}

static void put_event(struct run *r, uint64_t seq, uint64_t ns)
{
	r->event.seq = seq;
	r->event.time_ns = ns;
	r->undated = 0;
}

/* Finds the next event with a change, a level or a mark. False: there is none. */
static bool next_event(struct run *r, bool first)
{
	const struct device_level *level = r->levels.now;
	const struct lives_mark *mark = next_mark(r);
	const struct model *m = r->series->model;

	r->event.seq = r->walk.change ? r->walk.now.seq : UINT64_MAX;
	r->undated = r->walk.change == CHANGE_DIED ? r->walk.now.life + 1 : 0;
	if (!r->undated)
		r->event.time_ns = lives_walk_ns(&r->walk);
	if (level && level->seq < r->event.seq)
		put_event(r, level->seq, level->ns);
	if (mark && mark->seq < r->event.seq)
		put_event(r, mark->seq, mark->ns);
	if (first && m->first_seq < r->event.seq)
		put_event(r, m->first_seq, m->first_ns);
	return r->event.seq != UINT64_MAX;
}

static void take_level(struct run *r, const struct device_level *level)
{
	struct series_device *d = &r->devices[level->device];

	d->reserved = level->reserved;
	d->context = level->context;
	d->free_bytes = level->free_bytes;
}

static void take_event(struct run *r)
{
	const struct lives_mark *mark;

	for (; r->walk.change && r->walk.now.seq == r->event.seq; lives_walk_next(&r->walk)) {
		if (r->walk.change == CHANGE_BORN)
			born(r, r->walk.now.life);
		else if (r->walk.change == CHANGE_DIED)
			died(r, r->walk.now.life);
		else
			touch(r, r->walk.now.life, r->walk.change);
	}
	for (; r->levels.now && r->levels.now->seq == r->event.seq; levels_next(&r->levels))
		take_level(r, r->levels.now);
	for (size_t i = 0; i < r->touched_count; i++)
		settle_series(r, &r->touched[i]);
	r->touched_count = 0;
	r->event.mark = NULL;
	for (; (mark = next_mark(r)) && mark->seq == r->event.seq; r->mark++)
		r->event.mark = mark;
	if (r->sink->event) {
		date_event(r);
		r->sink->event(r->sink->ctx, &r->event);
	}
}

/* Skips most of a row of steps that are left out: their changes of other lives repeat. Lives that
 * die in such a step were born in it, or in the step before. */
static void jump_repeats(struct run *r, size_t *row)
{
	const struct repeats *leave = r->series->leave;
	const struct repeat *at = leave && *row < leave->count ? &leave->items[*row] : NULL;

	if (!at || r->sink->life || r->sink->event ||
	    r->walk.next < (uint64_t)at->life + REPEATS_MARGIN * (uint64_t)at->lives)
		return;
	++*row;
	if (at->lives && r->walk.now.seq < at->known)
		lives_walk_jump(&r->walk, at->known);
}

/* Skips changes of lives that are not wanted, as most of a long run are. */
static void pass_unwanted(struct run *r)
{
	struct lives_walk *w = &r->walk;

	if (r->sink->life || r->sink->event)
		return;
	while (w->change && w->change != CHANGE_BORN && !r->now[w->now.life].class) {
		chunks_rest(r->lives->pool);
		lives_walk_next(w);
	}
}

void series_run(const struct series *s, const struct series_sink *sink)
{
	struct run *r = need_new(sizeof(*r));
	size_t bytes = sizeof(*r->now) * (s->model->lives.rows.count + 1), row = 0;

	r->series = s;
	r->sink = sink;
	r->lives = &s->model->lives;
	r->now = need_pages(bytes);
	r->event.devices = r->devices;
	lives_walk_first(&r->walk, r->lives);
	levels_first(&r->levels, &r->lives->levels);
	for (size_t n = 0; next_event(r, !n); n++) {
		chunks_rest(r->lives->pool);
		if (n % 65536 == 0)
			say_progress("following blocks", r->event.seq, s->model->events);
		if (s->until && r->event.seq > s->until)
			break;
		take_event(r);
		jump_repeats(r, &row);
		pass_unwanted(r);
	}
	say_progress_end();
	munmap(r->now, bytes);
	free(r->touched);
	free(r->same);
	free(r);
}
