/* SPDX-License-Identifier: Apache-2.0 */
#include "summary.h"

#include "../advise/advise.h"
#include "../answers/engine.h"
#include "../answers/large_line.h"
#include "../answers/reserved.h"
#include "../answers/unclassed.h"
#include "../base/arithmetic.h"
#include "../base/sorted.h"
#include "../base/shell.h"
#include "../recording/running.h"

#define LEAST	  (32u << 20) /* smaller findings, and those below 1/PART of the peak, are left out */
#define PART	  50
#define MUCH	  10   /* 1/MUCH of the reserved memory, or of the usual peak, is reported */
#define FEW_STEPS 4    /* with so few steps there is no usual step */
#define LONG_RUN  100  /* growth over so many steps is reported even if small */
#define FILLS	  1000 /* if the growth of so many runs would fill the device */
#define MANY_LIVES \
	(1u << 20) /* with more allocations `advise` takes longer than the rest of the report */

/* The findings and what they are derived from. */
struct search {
	struct summary *found;
	struct timeline *timeline;
	const struct peak *peak; /* of the timeline's device; NULL = it had no memory */
	uint64_t least;
	char file[SHELL_WORD];
	enum oom_cause cause; /* cause of a refusal; findings that repeat it are left out */
	bool ended;	      /* the run ended with that refusal */
};

/* file: the name of the recording in suggested commands. */
static void start_search(struct search *s, struct summary *out, struct timeline *t,
			 const char *file)
{
	const struct model_device *d = t->device < 0 ? NULL : &t->model.devices[t->device];

	*s = (struct search){ .found = out, .timeline = t, .least = LEAST, .cause = OOM_CAUSES };
	if (d && model_has_memory(d))
		s->peak = &model_curve(d)->peak;
	if (s->peak)
		s->least = arithmetic_most(s->peak->bytes / PART, LEAST);
	shell_word(file, s->file);
}

/* owner: NULL = not known. seq: event of the finding's moment; 0 = the whole run. */
static struct matter *add_matter(struct search *s, const char *kind, uint64_t bytes,
				 const struct owner *owner, uint64_t seq, uint64_t time_ns)
{
	static const struct owner none = { .function = "", .file = "" };
	struct summary *all = s->found;
	struct matter *m = need_item(all->items, all->count, all->room);

	*m = (struct matter){ .kind = kind,
			      .bytes = bytes,
			      .owner = owner ? *owner : none,
			      .seq = seq,
			      .time_ns = time_ns };
	return m;
}

#define put_text(text, ...) text_put((text), SUMMARY_TEXT, __VA_ARGS__)

static void say_more(struct search *s, struct matter *m, const char *command, const char *options)
{
	put_text(m->action, "gpumemtrace %s %s%s", command, s->file, options);
}

/* Returns the device of the last refusal, or -1. */
static int last_refusal(struct refusal *out, const struct timeline *t)
{
	bool found = refusals_find(out, &t->model.lives, 0);
	int device = out->event.device < 0 ? 0 : out->event.device;

	return found && device < MODEL_DEVICES ? device : -1;
}

static void find_refusal(struct search *s)
{
	struct timeline *t = s->timeline;
	struct oom_answer *a = &s->found->answer;
	struct oom *o = &s->found->oom;
	struct refusal refusal;
	struct matter *m;
	int device = last_refusal(&refusal, t);

	if (device < 0)
		return;
	m = add_matter(s, "out_of_memory",
		       model_peak_reserved(&t->model.devices[device]) + refusal.event.size, NULL,
		       refusal.event.seq, refusal.event.ns);
	say_more(s, m, "oom", "");
	if (device != t->device) {
		put_text(m->text, "Out of memory on device %d: %s were requested.", device,
			 B(refusal.event.size));
		return;
	}
	oom_look(o, t, &refusal);
	oom_answer(a, o);
	m->owner = o->wanted_owner;
	s->cause = a->cause;
	s->ended = !refusal.later_allocs;
	put_text(m->text, "Out of memory%s: %s", s->ended ? "" : ", and the program went on",
		 a->why);
	if (oom_document(a).look_at[0])
		put_text(m->action, "%s", a->line);
	else if (a->count && a->remedies[0].saves)
		put_text(m->action, "%s (saves %s%s%s)", a->remedies[0].what,
			 a->remedies[0].at_most ? "up to " : "", B(a->remedies[0].saves),
			 a->remedies[0].enough ? ", enough for this request" : "");
}

static uint64_t grown(const struct search *s)
{
	const struct leaks *l = s->found->leaks;

	return l->bytes_per_step * (l->to_step - l->from_step);
}

/* The growth is a large part of the peak, or would fill the device in a run of weeks. */
static bool growth_matters(const struct search *s)
{
	const struct leaks *l = s->found->leaks;
	uint64_t all = s->timeline->model.devices[s->timeline->device].total_bytes;

	return grown(s) >= s->least ||
	       (l->to_step - l->from_step >= LONG_RUN && all && grown(s) >= all / FILLS);
}

static void say_growth(struct search *s)
{
	const struct leaks *l = s->found->leaks;
	uint64_t bytes = grown(s);
	const struct leak *most = l->items;
	const struct extent *end;
	struct matter *m;

	if (!l->count || !growth_matters(s) || s->cause == CAUSE_growing ||
	    s->cause == CAUSE_retained_graph)
		return;
	end = &s->timeline->steps.items[l->to_step].extent;
	m = add_matter(s, "growth", bytes, &most->owner, end->last_seq, end->last_ns);
	put_text(m->text, "Memory grows by %s %s (step %zu to %zu: %s), %s of it %s of %s. %s",
		 B(l->bytes_per_step), l->each ? "with each step" : "a step on average",
		 l->from_step, l->to_step, B(bytes),
		 2 * most->bytes_per_step > l->bytes_per_step ? "most" : B(most->bytes_per_step),
		 category_kept_words(most->category), WHO(&most->owner), leaks_change(l));
	say_more(s, m, "leaks", "");
}

static void find_kept(struct search *s)
{
	struct summary *found = s->found;

	found->leaks = &found->oom.leaks;
	if (!found->answer.oom)
		leaks_find(&found->oom.leaks, s->timeline);
	say_growth(s);
}

/* Median peak of the steps that ended; 0 = too few ended. */
static uint64_t usual_peak(const struct steps *all)
{
	size_t n = steps_number(all), count = 0;
	uint64_t *peaks = need_new((n + 1) * sizeof(*peaks)), usual;

	for (size_t i = 1; i <= n; i++)
		if (all->items[i].ended)
			peaks[count++] = all->items[i].extent.peak;
	qsort(peaks, count, sizeof(*peaks), sorted_numbers);
	usual = count < FEW_STEPS ? 0 : peaks[count / 2];
	free(peaks);
	return usual;
}

/* One peak is far above the usual peak of a step. */
static void find_spike(struct search *s)
{
	struct timeline *t = s->timeline;
	uint64_t usual = usual_peak(&t->steps);
	char place[64] = "before the first step";
	const struct extent *e;
	struct owner owner;
	struct matter *m;
	size_t step;

	e = usual ? timeline_peak(t, &step) : NULL;
	if (!e || e->peak < usual + usual / MUCH || e->peak - usual < s->least ||
	    grown(s) >= s->least)
		return;
	if (step && step <= steps_number(&t->steps))
		snprintf(place, sizeof(place), "in step %zu", step);
	else if (step)
		snprintf(place, sizeof(place), "after the last step");
	owner = owners_find(&t->owners,
			    &(struct block){ .stack = e->peak_stack, .seq = e->peak_seq });
	m = add_matter(s, "spike", e->peak - usual, &owner, e->peak_seq, e->peak_ns);
	put_text(m->text, "The peak, %s, is %s, %s above the peak of the median step (%s)%s%s.",
		 B(e->peak), place, B(m->bytes), B(usual), m->owner.function[0] ? ": " : "",
		 m->owner.function[0] ? WHO(&m->owner) : "");
	say_more(s, m, "live", " --at peak");
}

/* Reserved memory above the peak of the memory in use. */
static void find_reserved(struct search *s)
{
	struct reserved_peak most;
	struct matter *m;
	uint64_t free_bytes;
	char words[RESERVED_WORDS];
	bool known;

	reserved_find(&most, s->timeline, s->timeline->device);
	free_bytes = arithmetic_beyond(most.bytes, s->peak->bytes);
	if (!free_bytes || free_bytes < s->least || free_bytes < most.bytes / MUCH)
		return;
	m = add_matter(s, most.pools.bytes >= most.bytes / 2 ? "pools" : "reserved", free_bytes,
		       &most.owner, most.seq, most.time_ns);
	known = most.owner.function[0];
	put_text(m->text, "Reserved memory reached %s, %s more than was ever in use%s%s.",
		 B(most.bytes), B(free_bytes), known ? "; " : "",
		 known ? reserved_words(&most, words, sizeof(words)) : "");
	if (most.pools.bytes >= most.bytes / 2)
		put_text(m->action, "%s", pool_kinds[most.pools.items[0].kind].advice);
	else
		say_more(s, m, "replay", "");
}

/* Another finding about the same blocks is listed already. */
static bool is_said(const struct search *s, const char *kind)
{
	const struct summary *found = s->found;

	return ANY_OF(x, found->items, found->count,
		      !strcmp(x->kind, !strcmp(kind, "kept") ? "growth" : kind));
}

/* Adds a finding about the peak. */
static struct matter *add_at_peak(struct search *s, const char *kind, uint64_t bytes,
				  const struct owner *owner)
{
	return add_matter(s, kind, bytes, owner, s->peak->event.seq, s->peak->event.time_ns);
}

static void say_advice(struct search *s, const struct finding *f)
{
	struct matter *m = add_at_peak(s, "advice", f->least, f->owner.function ? &f->owner : NULL);

	put_text(m->text, "The peak can be %s%s lower: %s.", f->least < f->saves ? "at least " : "",
		 B(f->least), f->what);
	say_more(s, m, "advise", "");
}

/* One line holds half of the peak, in caches, tables or data: no change of them is known. An engine
 * takes most of the device for its cache on purpose. */
static void find_held(struct search *s)
{
	const uint64_t peak = s->peak->bytes;
	const struct holder *most;
	struct holders lines;
	struct snapshot shot;
	struct engine engine;
	struct matter *m;

	engine_find(&engine, s->timeline);
	if (engine.total)
		return;
	snapshot_take(&shot, s->timeline, s->peak->event.seq);
	lines = holders_of_blocks(&shot.moment, &s->timeline->owners, true);
	most = lines.items;
	/* weights are expected to take most */
	if (lines.count && most->bytes >= peak / 2 && most->owner.file[0] &&
	    most->category != CATEGORY_parameters) {
		m = add_at_peak(s, "line", most->bytes, &most->owner);
		put_text(m->text,
			 "The peak is %s. %s of it (%s, %s) were allocated by one line, %s.",
			 B(peak), B(most->bytes), PERCENT(most->bytes, peak),
			 categories[most->category].words, WHO(&most->owner));
		say_more(s, m, "live", " --at peak");
	}
	free(lines.items);
	moment_free(&shot.moment);
}

/* If no change is known: the line that made most of the peak. */
static void find_line(struct search *s)
{
	struct large_line l;
	struct matter *m;

	if (ANY_OF(x, s->found->items, s->found->count,
		   x->bytes >= s->peak->bytes / 2 && strcmp(x->kind, "spike")))
		return;
	if (!large_line_at_peak(&l, s->timeline)) {
		find_held(s);
		return;
	}
	m = add_at_peak(s, "line", l.bytes, &l.owner);
	put_text(m->text,
		 moments_state_only(&s->timeline->model) ? "%s are allocated. %s"
							 : "The peak is %s. %s",
		 B(s->peak->bytes), l.text);
	if (l.change[0])
		put_text(m->action, "look at that line: %s", l.change);
	else
		say_more(s, m, "live", " --at peak");
}

/* The best change that saves 1/MUCH of the peak, with the line that made most of it where the
 * change is of no line. After a refusal the remedies of `oom` are used instead. */
static void find_advice(struct search *s)
{
	uint64_t least = arithmetic_most(s->peak->bytes / MUCH, s->least);
	struct advise a;
	size_t i = 0;

	if (s->ended || s->peak->bytes < least * MUCH ||
	    s->timeline->model.lives.rows.count > MANY_LIVES)
		return;
	advise_open(&a, s->timeline, false);
	while (i < a.count && (a.items[i].least < least || is_said(s, a.items[i].kind)))
		i++;
	if (i < a.count)
		say_advice(s, &a.items[i]);
	if (i == a.count || a.items[i].library)
		find_line(s);
	advise_close(&a);
}

/* Memory of a PyTorch snapshot that was allocated before its recording began. `oom` reports the
 * same for a refusal. */
static void find_unclassed(struct search *s)
{
	char words[UNCLASSED_WORDS];
	struct unclassed u;
	struct snapshot shot;
	struct matter *m;

	snapshot_take(&shot, s->timeline, s->peak->event.seq);
	unclassed_find(&u, s->timeline, &shot);
	moment_free(&shot.moment);
	if (u.bytes < s->least || s->cause != OOM_CAUSES ||
	    !unclassed_words(&u, s->peak->bytes, words))
		return;
	m = add_matter(s, "unknown", u.bytes, NULL, s->peak->event.seq, 0);
	put_text(m->text, "%s", words);
	put_text(m->action, "to know more, %s", UNCLASSED_NEXT);
}

/* Reasons to doubt the figures themselves. */
static void find_doubts(struct search *s, const struct values *v)
{
	const struct recording *r = s->timeline->recording;
	const char *state = recording_state_sentence(recording_state(r));
	char text[VALUES_SENTENCE], n[HUMAN_MANY];
	struct matter *m;

	if (v->decisions) {
		m = add_matter(s, "values", 0, v->first ? &v->first->owner : NULL, 0, 0);
		put_text(m->text, "%s.", values_sentence(v, text));
		put_text(m->action, "%s", values_effect(v));
	}
	if (!s->timeline->model.dropped && !state)
		return;
	m = add_matter(s, "incomplete", 0, NULL, 0, 0);
	say_more(s, m, "verify", "");
	if (s->timeline->model.dropped)
		put_text(m->text, "%s lost while recording: figures may be too low or too high.",
			 human_many(n, s->timeline->model.dropped, "event"));
	else
		put_text(m->text, "%s", state);
}

COMPARE(by_bytes, struct matter, ORDER(y->bytes, x->bytes))

/* Removes the smallest findings, but not the doubts, which have no bytes and come last. */
static void leave_out(struct summary *s)
{
	for (size_t end; s->count > SUMMARY_MOST; s->count--) {
		for (end = s->count; !s->items[end - 1].bytes; end--)
			;
		memmove(&s->items[end - 1], &s->items[end], (s->count - end) * sizeof(*s->items));
	}
}

void summary_find(struct summary *out, struct timeline *t, const struct values *v, const char *file)
{
	struct search s;

	start_search(&s, out, t, file);
	if (s.peak && !moments_state_only(&t->model)) {
		find_refusal(&s);
		find_kept(&s);
		find_spike(&s);
		find_reserved(&s);
		find_advice(&s);
	} else if (s.peak) {
		find_line(&s);
	}
	if (s.peak)
		find_unclassed(&s);
	find_doubts(&s, v);
	SORT(out->items, out->count, by_bytes);
	leave_out(out);
}

bool summary_find_end(struct summary *out, struct timeline *t, const char *file)
{
	struct refusal refusal;
	struct search s;
	int device = last_refusal(&refusal, t);

	if (device < 0 || refusal.later_allocs)
		return false;
	if (device != t->device)
		timeline_look(t, device);
	start_search(&s, out, t, file);
	find_refusal(&s);
	return true;
}

void summary_free(struct summary *s)
{
	oom_close(&s->oom);
	free(s->items);
}

static bool summary_row(void *ctx, size_t i, struct row_summary *row)
{
	const struct matter *m = &((struct summary *)ctx)->items[i];

	*row = (struct row_summary){ .kind = m->kind,
				     .bytes = m->bytes,
				     .text = m->text,
				     .action = m->action,
				     .owner = m->owner,
				     .time_ns = m->time_ns };
	return true;
}

struct rows_summary summary_rows(struct summary *s)
{
	return (struct rows_summary){ s->count, summary_row, s };
}

void summary_print(struct summary *s, struct emit *out)
{
	char text[SUMMARY_TEXT + 32];

	/* Findings without bytes are printed below, after the figures that they are about. */
	for (size_t i = 0; i < s->count && s->items[i].bytes; i++) {
		snprintf(text, sizeof(text), " %zu. %s", i + 1, s->items[i].text);
		emit_paragraph(out, "", "    ", text);
		snprintf(text, sizeof(text), "Next: %s", s->items[i].action);
		if (!strncmp(s->items[i].action, "gpumemtrace ", 12)) /* can be pasted */
			emit_line(out, "    %s", text);
		else
			emit_paragraph(out, "    ", "          ", text);
	}
	if (!s->count)
		emit_line(out, "%s", "Nothing stands out.");
	if (!s->count || s->items[0].bytes)
		emit_line(out, "%s", "");
}
