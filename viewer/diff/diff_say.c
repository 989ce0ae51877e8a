/* SPDX-License-Identifier: Apache-2.0 */
/* A finding as one sentence: the change, its bytes, its place (diff_causes.def). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../base/need.h"
#include "../model/optimizer_names.h"
#include "diff_sentence.h"

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
	for (size_t i = 0; i < d->pair_count; i++)
		if (d->pairs[i].category == CATEGORY_inputs && d->pairs[i].bytes_old > 4096 &&
		    d->pairs[i].bytes_old == d->pairs[i].bytes_new)
			return true;
	return false;
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
								: category_words(f->category);
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
		fprintf(s, "; not at the peak but in the %s", phase_noun(d->new.shot.phase));
	fputc('.', s);
	fclose(s);
}
