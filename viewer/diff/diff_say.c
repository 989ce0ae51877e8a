/* SPDX-License-Identifier: Apache-2.0 */
/* A finding as one sentence: the change, its bytes, its place (diff_causes.def). */
#include <math.h>

#include "../base/human.h"
#include "../model/optimizers.h"
#include "../recording/owner_words.h"
#include "diff.h"

/* Parts of the findings' sentences. */

#define SENTENCE 1200 /* bytes of a part */

/* Parts, each in a buffer that lasts as long as the block it stands in. */
#define PART ((char[SENTENCE]){ 0 })

#define B_TO_B(n, m) \
	human_apart((char[HUMAN_MAX]){ 0 }, n, m), human_apart((char[HUMAN_MAX]){ 0 }, m, n)
#define S(n)	       ((n) == 1 ? "" : "s")
#define SENTENCE_TIMES (HUMAN_MAX + 8)
#define TIMES(x)       sentence_times((char[SENTENCE_TIMES]){ 0 }, x)
#define WHO(o)	       sentence_owner(PART, o)
#define CALLER	       sentence_caller(PART, d, f)
#define CLASSES	       sentence_classes(PART, d, f)
#define PLACES	       sentence_places(PART, d, f)
#define BACKWARDS      sentence_passes(PART, d)
#define MOST	       "%s; most of it %s" /* how each class changed; the line to read */
#define MOST_WORDS     CLASSES, WHO(&f->owner)

/* "2 times", "1/8". */
static const char *sentence_times(char buf[SENTENCE_TIMES], double factor)
{
	double inverse = factor > 0 ? 1 / factor : 0;
	bool part = inverse > 1.9 && fabs(inverse - round(inverse)) < 0.005;

	if (factor >= 99.95)
		snprintf(buf, SENTENCE_TIMES, "%s times", N((uint64_t)(factor + 0.5)));
	else if (inverse > 100 || part)
		snprintf(buf, SENTENCE_TIMES, "1/%s", N((uint64_t)(inverse + 0.5)));
	else
		snprintf(buf, SENTENCE_TIMES, "%.3g times", factor);
	return buf;
}

static const char *sentence_owner(char buf[SENTENCE], const struct owner *o)
{
	char place[OWNER_WORDS], name[256];

	if (o->file[0] && o->line)
		snprintf(buf, SENTENCE, "%.120s %s", owner_name(o, name, sizeof(name)),
			 owner_place(o, place, sizeof(place), 0));
	else
		snprintf(buf, SENTENCE, "%.120s%s",
			 o->function[0] ? owner_name(o, name, sizeof(name)) : "(no stack)",
			 o->backward ? " (backward)" : "");
	return buf;
}

/* The changes of the finding's classes, the greatest first: "activations +3.0 MiB, ..." */
static const char *sentence_classes(char buf[SENTENCE], const struct diff *d,
				    const struct diff_finding *f)
{
	int64_t by_class[CATEGORIES] = { 0 };

	for (size_t i = 0; i < d->pair_count; i++)
		if (d->pairs[i].finding == f->id)
			by_class[d->pairs[i].category] += diff_delta(&d->pairs[i]);
	for (;;) {
		unsigned best = 0;

		for (unsigned c = 1; c < CATEGORIES; c++)
			if (llabs(by_class[c]) > llabs(by_class[best]))
				best = c;
		if (!by_class[best])
			return buf;
		text_add(buf, SENTENCE, "%s%s %s", buf[0] ? ", " : "", categories[best].words,
			 CHANGE(by_class[best]));
		by_class[best] = 0;
	}
}

#define PLACES_MOST 4

static bool is_before(const struct diff_pair *a, const struct diff_pair *b)
{
	return diff_size(a) != diff_size(b) ? diff_size(a) > diff_size(b) : a < b;
}

/* The changes of the finding's lines, the greatest first. */
static const char *sentence_places(char buf[SENTENCE], const struct diff *d,
				   const struct diff_finding *f)
{
	const struct diff_pair *last = NULL, *next;

	for (size_t n = 0; n < PLACES_MOST; n++, last = next) {
		next = NULL;
		FOR_EACH (const struct diff_pair, p, d->pairs, d->pair_count)
			if (p->finding == f->id && diff_size(p) && (!last || is_before(last, p)) &&
			    (!next || is_before(p, next)))
				next = p;
		if (!next)
			break;
		text_add(buf, SENTENCE, "%s%s %s of %.200s", n ? ", " : "",
			 CHANGE(diff_delta(next)), categories[next->category].words,
			 WHO(diff_owner(next)));
	}
	return buf;
}

/* How many lines of code a finding has; its pair of that class with the greatest change, NULL =
 * none. */
static size_t sentence_lines(const struct diff *d, const struct diff_finding *f)
{
	size_t n = 0;

	for (size_t i = 0; i < d->pair_count; i++) {
		bool again = d->pairs[i].finding != f->id;

		for (size_t j = 0; j < i && !again; j++)
			again = d->pairs[j].finding == f->id &&
				owners_same(diff_owner(&d->pairs[i]), diff_owner(&d->pairs[j]));
		n += !again;
	}
	return n;
}

static const struct diff_pair *sentence_greatest(const struct diff *d, const struct diff_finding *f,
						 unsigned category)
{
	return GREATEST_OF(p, d->pairs, d->pair_count,
			   p->finding == f->id && p->category == category, diff_size(p));
}

/* ", called at train train.py:12", for what a module made: its own line does not say it. */
static const char *sentence_caller(char buf[SENTENCE], const struct diff *d,
				   const struct diff_finding *f)
{
	const struct diff_site *site = diff_site_of(&d->pairs[f->pair]);

	if (site->caller.file[0])
		snprintf(buf, SENTENCE, ", called at %.1000s", WHO(&site->caller));
	return buf;
}

/* "; a step has 4 backward passes instead of 1" */
static const char *sentence_passes(char buf[SENTENCE], const struct diff *d)
{
	unsigned before = diff_backwards(&d->old), after = diff_backwards(&d->new);

	if (before && after && before != after)
		snprintf(buf, SENTENCE, "; a step has %u backward pass%s instead of %u", after,
			 after == 1 ? "" : "es", before);
	return buf;
}

/* An average of the weights, a teacher, a snapshot. */
static bool is_copy_of_all(const struct diff *d, const struct diff_finding *f)
{
	const struct diff_shot *shot = f->kind == DIFF_NEW ? &d->old.shot : &d->new.shot;
	uint64_t weights = shot->bytes[CATEGORY_parameters];
	uint64_t bytes = f->kind == DIFF_NEW ? f->bytes_new : f->bytes_old;

	return !d->no_classes && (f->kind == DIFF_NEW || f->kind == DIFF_GONE) && weights &&
	       (f->category == CATEGORY_parameters || f->category == CATEGORY_optimizer_state) &&
	       diff_apart(bytes, weights) < weights / 20;
}

/* The optimizer's own functions: for all parameters at once, or one after the other. */
static bool steps_otherwise(const struct diff_pair *p)
{
	return p->category == CATEGORY_optimizer_temporaries && p->old_site && p->new_site &&
	       strcmp(p->old_site->op, p->new_site->op);
}

static uint64_t leaks_per_step(const struct diff *d, const struct diff_finding *f,
			       const struct diff_side *s)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < s->leaks.count; i++) {
		bool mine = false;

		for (size_t j = 0; j < d->pair_count && !mine; j++) {
			const struct diff_pair *p = &d->pairs[j];
			const struct diff_site *site = s == &d->new ? p->new_site : p->old_site;

			mine = p->finding == f->id && site &&
			       owners_same(&site->owner, &s->leaks.items[i].owner);
		}
		sum += mine ? s->leaks.items[i].bytes_per_step : 0;
	}
	return sum;
}

static bool inputs_stayed(const struct diff *d)
{
	return ANY_OF(x, d->pairs, d->pair_count,
		      x->category == CATEGORY_inputs && x->bytes_old > 4096 &&
			      x->bytes_old == x->bytes_new);
}

/* Larger blocks, not more of them. */
static bool is_larger(const struct diff_pair *p)
{
	return p->blocks_new == p->blocks_old && p->bytes_old;
}

static const char *optimizer(const struct diff_side *side, char buf[SENTENCE])
{
	const struct spans *all = &side->timeline.model.spans;

	if (*optimizers_of_spans(all, &side->recording.defs, buf, SENTENCE))
		return buf;
	return diff_highest(side, PHASE_OPTIMIZER) ? "unknown" : "none";
}

/* "memory" if the class is unknown, or classes cannot be compared. */
static const char *class_words(const struct diff *d, const struct diff_finding *f)
{
	return d->no_classes || f->category == CATEGORY_unknown ? "memory"
								: categories[f->category].words;
}

static bool same_state(const struct diff *d)
{
	uint64_t before = d->old.shot.bytes[CATEGORY_optimizer_state];

	return before &&
	       diff_apart(before, d->new.shot.bytes[CATEGORY_optimizer_state]) < before / 20;
}

/* Writes the sentences of diff_causes.def. */
static void say_cause(FILE *s, const struct diff *d, const struct diff_finding *f)
{
	static const char *const kinds[] = { [DIFF_GROWN] = "More ",
					     [DIFF_SHRUNK] = "Less ",
					     [DIFF_NEW] = "New: ",
					     [DIFF_GONE] = "Gone: " };
	enum diff_cause cause = f->cause == CAUSE_FUNCTION ? CAUSE_LINE : f->cause;
	const struct diff_pair *first = &d->pairs[f->pair];
	const struct diff_pair *inputs = sentence_greatest(d, f, CATEGORY_inputs);
	const struct diff_pair *weights = sentence_greatest(d, f, CATEGORY_parameters);
	const struct diff_pair *made = sentence_greatest(d, f, CATEGORY_activations);
	const struct diff_shot *old = &d->old.shot, *new = &d->new.shot;
	uint64_t before = old->bytes[f->category], after = new->bytes[f->category];
	bool more = f->bytes_new > f->bytes_old, more_trained = new->trained > old->trained;
	uint64_t peak_before = d->old.at_peak.bytes[f->category];
	uint64_t peak_after = d->new.at_peak.bytes[f->category];
	bool both_have_gradients = diff_has_gradients(&d->old) && diff_has_gradients(&d->new);
	bool further = diff_gradients(&d->new) > diff_gradients(&d->old);
	enum phase was_in = diff_phase_at(&d->old, d->old.peak_seq);
	enum phase is_in = diff_phase_at(&d->new, d->new.peak_seq);
	enum phase looked = d->new.peak >= d->old.peak ? is_in : was_in;
	size_t lines = sentence_lines(d, f);

	made = made ? made : sentence_greatest(d, f, CATEGORY_forward_temporaries);
#define SAY(cause_, when, ...)                 \
	if (cause == CAUSE_##cause_ && (when)) \
		fprintf(s, __VA_ARGS__);
#include "diff_causes.def"
}

void diff_say(struct diff *d, struct diff_finding *f)
{
	size_t len;
	FILE *s;

	free(f->text);
	s = need_stream(&f->text, &len);
	say_cause(s, d, f);
	if (d->below_peak && f->cause != CAUSE_RESERVED)
		fprintf(s, "; not at the peak but in the %s", phases[d->new.shot.phase].noun);
	fputc('.', s);
	fclose(s);
}
