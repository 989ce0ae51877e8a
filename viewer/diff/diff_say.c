/* SPDX-License-Identifier: Apache-2.0 */
/* A finding in one sentence: what changed, by how many bytes, where. One function for each cause.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../base/need.h"
#include "../spans/optimizer_names.h"
#include "diff_sentence.h"

/* An average of the weights, a teacher, a snapshot. */
static bool is_copy_of_all(const struct diff *d, const struct diff_finding *f)
{
	const struct diff_shot *shot = f->kind == DIFF_NEW ? &d->old.shot : &d->new.shot;
	uint64_t weights = shot->bytes[CATEGORY_parameters];
	uint64_t bytes = f->kind == DIFF_NEW ? f->bytes_new : f->bytes_old;

	return (f->kind == DIFF_NEW || f->kind == DIFF_GONE) && weights &&
	       (f->category == CATEGORY_parameters || f->category == CATEGORY_optimizer_state) &&
	       diff_apart(bytes, weights) < weights / 20;
}

/* The optimizer's own functions: one for all parameters at once, or one after the other. */
static void say_steps(struct sentence *s, const struct diff_pair *p)
{
	if (p->category == CATEGORY_optimizer_temporaries && p->old_site && p->new_site &&
	    strcmp(p->old_site->op, p->new_site->op))
		sentence_add(s, "; made by %.60s, were by %.60s", p->new_site->op, p->old_site->op);
}

static void say_blocks(struct sentence *s, const struct diff_finding *f)
{
	if (f->blocks_old != f->blocks_new)
		sentence_add(s, " (%" PRIu64 " block%s, were %" PRIu64 ")", f->blocks_new,
			     S(f->blocks_new), f->blocks_old);
	else if (f->blocks_old)
		sentence_add(s, " (each block %.3g times as large)",
			     (double)f->bytes_new / (double)f->bytes_old);
}

static void say_line(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	static const char *const words[] = { [DIFF_GROWN] = "More ",
					     [DIFF_SHRUNK] = "Less ",
					     [DIFF_NEW] = "New: ",
					     [DIFF_GONE] = "Gone: " };
	size_t lines = sentence_lines(d, f);

	sentence_add(s, "%s%s of %s%s", words[f->kind], category_words(f->category), WHO(&f->owner),
		     f->kind != DIFF_GONE && !d->pairs[f->pair].new_site ? " of the old version"
									 : "");
	if (lines > 1)
		sentence_add(s, " and %zu other line%s", lines - 1, S(lines - 1));
	sentence_add(s, ": ");
	if (f->kind == DIFF_GROWN || f->kind == DIFF_SHRUNK)
		sentence_add(s, "%s -> %s, ", B(f->bytes_old), B(f->bytes_new));
	sentence_add(s, "%s", CHANGE(f));
	say_blocks(s, f);
	if (is_copy_of_all(d, f))
		sentence_add(s, "; as large as all parameters, as a copy of them is");
	say_steps(s, &d->pairs[f->pair]);
	if (f->cause == CAUSE_FUNCTION)
		sentence_add(s, "%s", CALLER);
}

static uint64_t per_step(const struct diff *d, const struct diff_finding *f,
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

static void say_kept(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	if (f->bytes_new > f->bytes_old)
		sentence_add(s,
			     "Kept from step to step: %s more with every step (a list, or a result "
			     "kept with its graph); " MOST,
			     B(per_step(d, f, &d->new)), MOST_WORDS);
	else
		sentence_add(s,
			     "No longer kept from step to step: %s with every step before; " MOST,
			     B(per_step(d, f, &d->old)), MOST_WORDS);
}

static void say_precision(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	sentence_add(
		s,
		"All is %.3g times as large, the parameters too, as with another precision: " MOST,
		f->factor, MOST_WORDS);
}

static void say_casts(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	sentence_add(s, "Results are %s: " MOST,
		     d->new.casts ? "cast to another precision (autocast), the parameters are not"
				  : "no longer cast to another precision (autocast)",
		     MOST_WORDS);
}

static bool inputs_stayed(const struct diff *d)
{
	for (size_t i = 0; i < d->pair_count; i++)
		if (d->pairs[i].category == CATEGORY_inputs && d->pairs[i].bytes_old > 4096 &&
		    d->pairs[i].bytes_old == d->pairs[i].bytes_new)
			return true;
	return false;
}

static void say_scale(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	const struct diff_pair *inputs = sentence_greatest(d, f, CATEGORY_inputs);

	if (inputs)
		sentence_add(s,
			     "The inputs are %.3g times as large (%s), as with another batch or "
			     "sequence, and so is what a pass makes: ",
			     f->factor, WHO(diff_owner(inputs)));
	else
		sentence_add(s, "What a pass makes is %.3g times as large, %s: ", f->factor,
			     inputs_stayed(d)
				     ? "the inputs are not, as with another precision or width"
				     : "as with another batch or sequence");
	sentence_add(s, "%s", CLASSES);
	if (f->square)
		sentence_add(s, "; some even %.3g times, as scores between tokens are",
			     f->factor * f->factor);
	sentence_add(s, "; most of it %s%s", WHO(&f->owner), BACKWARDS);
}

static void say_result(struct sentence *s, const struct diff_pair *p)
{
	sentence_add(s, "; %s holds ", WHO(diff_owner(p)));
	if (p->blocks_new == p->blocks_old && p->bytes_old)
		sentence_add(s, "blocks %.3g times as large",
			     (double)p->bytes_new / (double)p->bytes_old);
	else
		sentence_add(s, "%" PRIu64 " block%s, were %" PRIu64, p->blocks_new,
			     S(p->blocks_new), p->blocks_old);
}

static void say_model(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	const struct diff_pair *made = sentence_greatest(d, f, CATEGORY_activations);
	const struct diff_pair *weights = sentence_greatest(d, f, CATEGORY_parameters);

	made = made ? made : sentence_greatest(d, f, CATEGORY_forward_temporaries);
	sentence_add(s, "A %s model: %s", f->bytes_new > f->bytes_old ? "larger" : "smaller",
		     CLASSES);
	if (made)
		say_result(s, made);
	if (weights)
		sentence_add(s, "; parameters of %s", WHO(diff_owner(weights)));
}

static const char *optimizer(const struct diff_side *side, char buf[SENTENCE])
{
	const struct spans *all = &side->timeline.model.spans;

	return *optimizer_of_spans(all, SIZE_MAX, &side->recording.defs, buf) ? buf : "unknown";
}

static void say_optimizer(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	const uint64_t *before = d->old.shot.bytes, *after = d->new.shot.bytes;

	sentence_add(s, "%s optimizer state%s, %s at %s (%s -> %s)",
		     !before[f->category]	   ? "New"
		     : !after[f->category]	   ? "No"
		     : f->bytes_new > f->bytes_old ? "More"
						   : "Less",
		     before[CATEGORY_parameters] == after[CATEGORY_parameters]
			     ? " for the same parameters"
			     : "",
		     CHANGE(f), WHO(&f->owner), optimizer(&d->old, PART), optimizer(&d->new, PART));
}

static void say_gradients(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	uint64_t before = d->old.shot.bytes[f->category], after = d->new.shot.bytes[f->category];
	const char *phase = phase_noun(d->new.shot.phase);
	bool more = f->bytes_new > f->bytes_old;

	if (diff_keeps_gradients(d)) {
		sentence_add(s, "%s: %s in the %s; the line to read is %s",
			     more ? "More gradients, kept from step to step (set_to_none=False, or "
				    "no zero_grad)"
				  : "Fewer gradients, freed between steps now (zero_grad)",
			     CHANGE(f), phase, WHO(&f->owner));
		return;
	}
	sentence_add(s, "%s gradients in the %s: %s", more ? "More" : "Less", phase, CHANGE(f));
	if (before < after / 10)
		sentence_add(s,
			     "; there were %s before (set_to_none=False, no zero_grad, or sums "
			     "over several passes)",
			     before ? "hardly any" : "none");
	if (after < before / 10)
		sentence_add(s, "; they are freed before it now");
	sentence_add(s, "; most of it %s%s", WHO(&f->owner), BACKWARDS);
}

static bool same_state(const struct diff *d)
{
	uint64_t before = d->old.shot.bytes[CATEGORY_optimizer_state];

	return before &&
	       diff_apart(before, d->new.shot.bytes[CATEGORY_optimizer_state]) < before / 20;
}

static void say_trained(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	const struct diff_shot *old = &d->old.shot, *new = &d->new.shot;
	bool more = new->trained > old->trained;

	sentence_add(s, "%s of the parameters are trained (%s of %s, were %s of %s)",
		     more ? "More" : "Fewer", B(new->trained), B(new->bytes[CATEGORY_parameters]),
		     B(old->trained), B(old->bytes[CATEGORY_parameters]));
	if (same_state(d))
		sentence_add(s,
			     " but the optimizer holds as much as before, as %s torch.no_grad() or "
			     ".detach(): ",
			     more ? "without" : "with");
	else
		sentence_add(s, ", as with layers %s: ", more ? "set free" : "frozen");
	sentence_add(s, MOST "%s", MOST_WORDS, CALLER);
}

static void say_recompute(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	sentence_add(s,
		     "Activations are %s in backward (checkpointing): %s %s of them kept, in %zu "
		     "lines, most of it %s",
		     d->new.recomputes ? "now made again" : "no longer made again",
		     B(diff_apart(f->bytes_old, f->bytes_new)),
		     f->bytes_new < f->bytes_old ? "less" : "more", sentence_lines(d, f),
		     WHO(&f->owner));
}

static void say_compiled(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	sentence_add(
		s,
		"The model is %s (torch.compile), what a pass makes is made by other code: " MOST,
		d->new.compiled ? "compiled now" : "no longer compiled", MOST_WORDS);
}

static void say_recorded(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	bool more = f->bytes_new > f->bytes_old;

	sentence_add(s,
		     "Passes that no backward pass follows are %s recorded for one, as %s "
		     "torch.no_grad(): " MOST "%s",
		     more ? "now" : "no longer", more ? "without" : "with", MOST_WORDS, CALLER);
}

static void say_reach(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	uint64_t before = diff_gradients(&d->old), after = diff_gradients(&d->new);
	const struct owner *most = diff_owner(&d->pairs[f->pair]);

	sentence_add(s,
		     "Backward goes %s: it brings %" PRIu64 " gradients to parameters in a step, "
		     "were %" PRIu64 ", as with a result that is %s: " MOST "%s",
		     after > before ? "further" : "less far", after, before,
		     after > before ? "no longer detached" : "detached now", CLASSES, WHO(most),
		     CALLER);
	if (!owners_same(most, &f->owner))
		sentence_add(s, ", in the pass back from %s", WHO(&f->owner));
}

static void say_passes(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	size_t before = d->old.shot.passes, after = d->new.shot.passes;

	sentence_add(s,
		     "Results of %zu forward pass%s are held at once, were of %zu%s: " MOST "%s%s",
		     after, after == 1 ? "" : "es", before,
		     after > before ? ", as with one backward pass for several losses" : "",
		     MOST_WORDS, CALLER, BACKWARDS);
}

static void say_rounding(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	size_t lines = sentence_lines(d, f);

	sentence_add(s,
		     "Blocks of %zu line%s have other remainders, which the allocator leaves in "
		     "blocks over 1 MiB: %s",
		     lines, S(lines), CLASSES);
}

static void say_peak(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	enum phase before = diff_phase_at(&d->old, d->old.peak_seq);
	enum phase after = diff_phase_at(&d->new, d->new.peak_seq);

	sentence_add(s,
		     "The peak moved: it was in the %s and is in the %s; in the %s it went from %s "
		     "to %s, mostly by %s of %s",
		     phase_noun(before), phase_noun(after),
		     phase_noun(d->new.peak >= d->old.peak ? after : before), B(f->bytes_old),
		     B(f->bytes_new), category_words(f->category), WHO(&f->owner));
}

void diff_say(struct diff *d, struct diff_finding *f)
{
	static void (*const say[])(struct sentence *, const struct diff *,
				   const struct diff_finding *) = {
		[CAUSE_LINE] = say_line,	   [CAUSE_FUNCTION] = say_line,
		[CAUSE_KEPT] = say_kept,	   [CAUSE_PRECISION] = say_precision,
		[CAUSE_CASTS] = say_casts,	   [CAUSE_SCALE] = say_scale,
		[CAUSE_MODEL] = say_model,	   [CAUSE_OPTIMIZER] = say_optimizer,
		[CAUSE_GRADIENTS] = say_gradients, [CAUSE_TRAINED] = say_trained,
		[CAUSE_RECOMPUTE] = say_recompute, [CAUSE_RECORDED] = say_recorded,
		[CAUSE_REACH] = say_reach,	   [CAUSE_PASSES] = say_passes,
		[CAUSE_ROUNDING] = say_rounding,   [CAUSE_PEAK] = say_peak,
		[CAUSE_COMPILED] = say_compiled,
	};
	struct sentence s = { .len = 0 };

	say[f->cause](&s, d, f);
	if (d->below_peak)
		sentence_add(&s, "; not at the peak but in the %s", phase_noun(d->new.shot.phase));
	sentence_add(&s, ".");
	free(f->text);
	f->text = need_copy(s.text, s.len);
}
