/* SPDX-License-Identifier: Apache-2.0 */
#include "question.h"

#include <unistd.h>

#include "../../format/record.h"
#include "../answers/peak.h"
#include "../moments/following.h"
#include "../moments/refusals.h"
#include "../ranks/ranks_look.h"
#include "../recording/copying.h"
#include "../recording/running.h"
#include "../recording/owner_words.h"

/* Fact that is recorded as soon as an optimizer is made. */
#define OPTIMIZER "torch.optimizer"

/* A recording that is followed. */
struct followed {
	char *path;
	struct following follow;
	uint32_t marks;	      /* marks that were searched for failed allocations */
	uint64_t refused_seq; /* the latest of these */
};

/* ---- figures of running and ended runs ---- */

static double seconds_of(const struct steps *s, size_t i)
{
	const struct extent *e = &s->items[i].extent;
	uint64_t until = i + 1 < s->count ? s->items[i + 1].extent.first_ns : e->last_ns;

	return until > e->first_ns ? (double)(until - e->first_ns) / 1e9 : 0;
}

/* The steps, and what came after them. */
static void emit_units(struct emit *out, const struct steps *s)
{
	size_t ended = s->count - (s->tail ? 1 : 0);

	emit_array(out, "units");
	for (size_t i = 1; i < s->count; i++) {
		const struct extent *e = &s->items[i].extent;

		emit_array(out, NULL);
		emit_number(out, NULL, e->peak);
		emit_decimal(out, NULL, seconds_of(s, i));
		emit_flag(out, NULL, s->items[i].ended && i < ended);
		emit_number(out, NULL, e->first_seq);
		emit_end(out);
	}
	emit_end(out);
}

/* Peak of the framework's reserved bytes, else of the driver's. At least the blocks' peak. */
static uint64_t reserved_of(const struct model_device *d)
{
	uint64_t bytes = d->framework ? d->reserved.peak.bytes : d->driver.peak.bytes;
	uint64_t peak = model_curve(d)->peak.bytes;

	return bytes > peak ? bytes : peak;
}

static void emit_device(struct emit *out, const struct model_device *d)
{
	emit_number(out, "peak", model_curve(d)->peak.bytes);
	emit_number(out, "reserved", reserved_of(d));
}

/* ---- a run that goes on ---- */

/* Backward passes alone do not count as steps, because gradients of many may be accumulated before
 * the optimizer makes its state. */
static bool has_steps(const struct steps *s, const struct spans *spans)
{
	if (s->basis == STEPS_PROFILER && spans->trains)
		for (size_t i = 1; i < s->count; i++)
			if (step_has(&s->items[i], PHASE_OPTIMIZER))
				return true;
	return s->basis == STEPS_OPTIMIZER || (s->basis == STEPS_PROFILER && !spans->trains);
}

static void look_for_refusals(struct followed *w)
{
	const struct row_store *marks = &w->follow.timeline.model.lives.marks;

	if (w->marks > marks->count)
		w->marks = 0; /* everything was read again */
	for (; w->marks < marks->count; w->marks++) {
		const struct lives_mark *m = rows_at(marks, w->marks);

		if (refusals_is_one(m, false) && m->seq > w->refused_seq)
			w->refused_seq = m->seq;
	}
}

static void emit_look(struct emit *out, struct followed *w)
{
	const struct timeline *t = &w->follow.timeline;
	const struct model *m = &t->model;

	look_for_refusals(w);
	emit_object(out, NULL);
	emit_number(out, "pid", w->follow.recording.info->pid);
	emit_number(out, "events", w->follow.seq);
	emit_device(out, &m->devices[t->device]);
	emit_flag(out, "has_steps", has_steps(&t->steps, &m->spans));
	emit_flag(out, "backward", t->steps.basis == STEPS_BACKWARD);
	emit_flag(out, "trains", m->spans.trains);
	emit_flag(out, "optimizer", defs_meta(&w->follow.recording.defs, OPTIMIZER).len);
	emit_flag(out, "passes", m->leaves.count);
	emit_number(out, "refused_seq", w->refused_seq);
	emit_units(out, &t->steps);
	emit_end(out);
}

static struct followed *find_followed(const char *path)
{
	static struct followed **all;
	static size_t count, room;
	struct followed *w;

	for (size_t i = 0; i < count; i++)
		if (!strcmp(all[i]->path, path))
			return all[i];
	w = need_new(sizeof(*w));
	w->path = need_text(path);
	w->follow = (struct following){ .path = w->path, .device = -1 };
	return *need_item(all, count, room) = w;
}

static bool answer_look(struct emit *out, const char *path)
{
	struct followed *w = find_followed(path);
	struct gmt_reader_info info;

	if (!running_info(path, &info) || !info.last_seq || following_look(&w->follow))
		return false;
	emit_look(out, w);
	return true;
}

/* ---- a run that ended ---- */

/* Whether the latest span of that phase began after the event. */
static bool comes_after(const struct spans *s, enum phase phase, uint64_t seq, bool *any)
{
	for (size_t i = s->count; i-- > 0;)
		if (s->items[i].phase == phase) {
			*any = true;
			return s->items[i].extent.first_seq > seq;
		}
	return false;
}

/* Whether the allocation failed in a training step, and not in an evaluation. */
static bool is_training(const struct spans *s, uint64_t seq)
{
	const struct span *at = NULL;

	for (size_t i = 0; i < s->count && s->items[i].extent.first_seq <= seq; i++)
		at = &s->items[i];
	return at && (at->phase == PHASE_BACKWARD || at->phase == PHASE_OPTIMIZER ||
		      (at->phase == PHASE_FORWARD && at->kept));
}

/* Whether the program recovered. In a training step its optimizer must have run afterwards. In any
 * other work an allocation must have succeeded again. */
static bool went_on(const struct spans *s, const struct refusal *r)
{
	bool optimizer = false;

	if (comes_after(s, PHASE_OPTIMIZER, r->event.seq, &optimizer))
		return true;
	if (!optimizer && comes_after(s, PHASE_BACKWARD, r->event.seq, &optimizer))
		return true;
	return !is_training(s, r->event.seq) && r->later_allocs;
}

static uint64_t count_fails(const struct lives *l)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < l->marks.count; i++)
		n += ((const struct lives_mark *)rows_at(&l->marks, i))->kind == GMT_MEM_FAIL;
	return n;
}

static void emit_refusals(struct emit *out, const struct timeline *t)
{
	struct refusal refusal;

	emit_number(out, "fails", count_fails(&t->model.lives));
	emit_flag(out, "trains", t->model.spans.trains);
	if (!refusals_find(&refusal, &t->model.lives, 0))
		return;
	emit_number(out, "refusals", refusal.count);
	emit_signed(out, "refused_ns",
		    (int64_t)refusal.event.ns + t->recording->info->realtime_minus_monotonic_ns);
	emit_flag(out, "went_on", went_on(&t->model.spans, &refusal));
}

/* Emits the peak's moment, classes and largest line. */
static void emit_description(struct emit *out, struct timeline *t)
{
	struct peak_answer a;
	char words[OWNER_WORDS];

	peak_find(&a, t);
	emit_object(out, "description");
	emit_text(out, "peak_text", a.instant.text);
	if (a.lines.count) {
		emit_text(out, "peak_class", categories[a.lines.items[0].category].name);
		emit_number(out, "peak_class_bytes", a.shot.bytes[a.lines.items[0].category]);
		emit_text(out, "peak_line",
			  owner_words(&a.lines.items[0].owner, words, sizeof(words), 0));
		emit_number(out, "peak_line_bytes", a.lines.items[0].bytes);
	}
	emit_object(out, "categories");
	for (unsigned c = 0; c < CATEGORIES; c++)
		if (a.shot.bytes[c])
			emit_number(out, categories[c].name, a.shot.bytes[c]);
	emit_end(out);
	emit_end(out);
	peak_free(&a);
}

/* Whether the program trains with an optimizer and no step has ended: the peak might still come. */
static bool lacks_step(const struct timeline *t)
{
	return t->model.spans.trains && defs_meta(t->stacks.defs, OPTIMIZER).len &&
	       !has_steps(&t->steps, &t->model.spans);
}

/* Number of optimizer steps that followed a backward pass. */
static uint64_t updates_of(const struct spans *s)
{
	bool back = false;
	uint64_t n = 0;

	FOR_EACH (const struct span, x, s->items, s->count) {
		if (back && x->phase == PHASE_OPTIMIZER)
			n++;
		back = x->phase == PHASE_BACKWARD || (back && x->phase != PHASE_OPTIMIZER);
	}
	return n;
}

static void emit_used_device(struct emit *out, struct timeline *t)
{
	emit_flag(out, "lacks_step", lacks_step(t));
	emit_device(out, &t->model.devices[t->device]);
	emit_number(out, "steps", steps_number(&t->steps));
	emit_number(out, "updates", updates_of(&t->model.spans));
	emit_units(out, &t->steps);
	emit_description(out, t);
}

static long rank_of(const char *path)
{
	struct rank_file f;
	long rank;

	ranks_look(&f, need_text(path));
	rank = f.rank;
	ranks_look_free(&f);
	return rank;
}

static bool answer_whole(struct emit *out, const char *path)
{
	struct recording r;
	struct timeline t = { 0 };

	emit_object(out, NULL);
	emit_signed(out, "rank", rank_of(path));
	if (!recording_open(&r, path)) {
		if (!timeline_open_any(&t, &r)) {
			emit_refusals(out, &t);
			if (t.device >= 0)
				emit_used_device(out, &t);
			timeline_close(&t);
		}
		recording_close(&r);
	}
	emit_end(out);
	return true;
}

static bool answer_complete(struct emit *out, const char *path)
{
	char part[PATH_MAX + 8], live[PATH_MAX + 8];
	struct recording r;
	uint64_t events;
	int rc;

	snprintf(part, sizeof(part), "%s.whole", path);
	snprintf(live, sizeof(live), "%s.live", path);
	if (access(live, F_OK) || recording_open(&r, path))
		return false;
	rc = copying_write(&r, part, COPYING_SEARCH, &events);
	recording_close(&r);
	if (rc || rename(part, path))
		return false;
	unlink(live);
	emit_object(out, NULL);
	emit_end(out);
	return true;
}

static bool answer_written(struct emit *out, const char *path)
{
	struct gmt_reader_info info;

	if (!running_info(path, &info) || !running_maps(info.pid, path))
		return false;
	emit_object(out, NULL);
	emit_end(out);
	return true;
}

/* ---- questions ---- */

static const struct {
	const char *word;
	bool (*answer)(struct emit *out, const char *path);
} questions[] = {
	{ "look ", answer_look },
	{ "whole ", answer_whole },
	{ "complete ", answer_complete },
	{ "written ", answer_written },
};

static bool answer_question(struct emit *out, const char *line)
{
	for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
		size_t len = strlen(questions[i].word);

		if (!strncmp(line, questions[i].word, len))
			return questions[i].answer(out, line + len);
	}
	return false;
}

int search_facts(void)
{
	struct emit *out = emit_open(stdout, true);
	char *line = NULL;
	size_t room = 0;
	ssize_t n;

	say_progress_off();
	while ((n = getdelim(&line, &room, 0, stdin)) > 0) {
		line[n - (line[n - 1] ? 0 : 1)] = 0;
		if (!answer_question(out, line))
			fputs("null\n", stdout);
		fflush(stdout);
	}
	free(line);
	return emit_close(out) ? EXIT_UNREADABLE : EXIT_OK;
}
