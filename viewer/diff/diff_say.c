/* SPDX-License-Identifier: Apache-2.0 */
/* A finding in one sentence: what changed, by how many bytes, where. One function for each cause.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../base/need.h"
#include "diff_sentence.h"

/* ---- one for each cause */

/* An average of the weights, a teacher, a snapshot. */
static bool is_copy_of_all(const struct diff *d, const struct diff_finding *f)
{
	const struct diff_shot *shot = f->kind == DIFF_NEW ? &d->old_shot : &d->new_shot;
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
			     f->blocks_new == 1 ? "" : "s", f->blocks_old);
	else if (f->blocks_old)
		sentence_add(s, " (each block %.3g times as large)",
			     (double)f->bytes_new / (double)f->bytes_old);
}

static void say_line(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	size_t lines = sentence_lines(d, f);

	if (f->kind == DIFF_NEW || f->kind == DIFF_GONE)
		sentence_add(s, "%s: %s of ", f->kind == DIFF_NEW ? "New" : "Gone",
			     category_words(f->category));
	else
		sentence_add(s, "%s %s of ", f->kind == DIFF_GROWN ? "More" : "Less",
			     category_words(f->category));
	sentence_owner(s, &f->owner);
	if (f->kind != DIFF_GONE && !d->pairs[f->pair].new_site)
		sentence_add(s, " of the old version");
	if (lines > 1)
		sentence_add(s, " and %zu other line%s", lines - 1, lines > 2 ? "s" : "");
	sentence_add(s, ": ");
	if (f->kind == DIFF_GROWN || f->kind == DIFF_SHRUNK) {
		sentence_bytes(s, f->bytes_old);
		sentence_add(s, " -> ");
		sentence_bytes(s, f->bytes_new);
		sentence_add(s, ", ");
	}
	sentence_add(s, "%c", f->bytes_new < f->bytes_old ? '-' : '+');
	sentence_bytes(s, diff_apart(f->bytes_old, f->bytes_new));
	say_blocks(s, f);
	if (is_copy_of_all(d, f))
		sentence_add(s, "; as large as all parameters, as a copy of them is");
	say_steps(s, &d->pairs[f->pair]);
	if (f->cause == CAUSE_FUNCTION)
		sentence_caller(s, d, f);
}

static uint64_t per_step(const struct diff *d, const struct diff_finding *f, const struct leaks *l)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < l->count; i++) {
		bool mine = false;

		for (size_t j = 0; j < d->pair_count && !mine; j++) {
			const struct diff_pair *p = &d->pairs[j];
			const struct diff_site *site =
				l == &d->new_leaks ? p->new_site : p->old_site;

			mine = p->finding == f->id && site &&
			       owners_same(&site->owner, &l->items[i].owner);
		}
		sum += mine ? l->items[i].bytes_per_step : 0;
	}
	return sum;
}

static void say_kept(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	bool gained = f->bytes_new > f->bytes_old;

	sentence_add(s, gained ? "Kept from step to step: " : "No longer kept from step to step: ");
	sentence_bytes(s, per_step(d, f, gained ? &d->new_leaks : &d->old_leaks));
	sentence_add(s, gained ? " more with every step (a list, or a result kept with its graph); "
			       : " with every step before; ");
	sentence_classes(s, d, f);
	sentence_add(s, "; most of it ");
	sentence_owner(s, &f->owner);
}

static void say_precision(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	sentence_add(s,
		     "All is %.3g times as large, the parameters too, as with another precision: ",
		     f->factor);
	sentence_classes(s, d, f);
	sentence_add(s, "; most of it ");
	sentence_owner(s, &f->owner);
}

static void say_casts(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	sentence_add(s, d->new.casts
				? "Results are cast to another precision (autocast), the "
				  "parameters are not: "
				: "Results are no longer cast to another precision (autocast): ");
	sentence_classes(s, d, f);
	sentence_add(s, "; most of it ");
	sentence_owner(s, &f->owner);
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

	if (inputs) {
		sentence_add(s, "The inputs are %.3g times as large (", f->factor);
		sentence_owner(s, diff_owner(inputs));
		sentence_add(s,
			     "), as with another batch or sequence, and so is what a pass makes: ");
	} else if (inputs_stayed(d)) {
		sentence_add(
			s,
			"What a pass makes is %.3g times as large, the inputs are not, as with "
			"another precision or width: ",
			f->factor);
	} else {
		sentence_add(s,
			     "What a pass makes is %.3g times as large, as with another batch or "
			     "sequence: ",
			     f->factor);
	}
	sentence_classes(s, d, f);
	if (f->square)
		sentence_add(s, "; some even %.3g times, as scores between tokens are",
			     f->factor * f->factor);
	sentence_add(s, "; most of it ");
	sentence_owner(s, &f->owner);
	sentence_passes(s, d);
}

static void say_result(struct sentence *s, const struct diff_pair *p)
{
	if (p->blocks_new == p->blocks_old && p->bytes_old)
		sentence_add(s, " holds blocks %.3g times as large",
			     (double)p->bytes_new / (double)p->bytes_old);
	else
		sentence_add(s, " holds %" PRIu64 " block%s, were %" PRIu64, p->blocks_new,
			     p->blocks_new == 1 ? "" : "s", p->blocks_old);
}

static void say_model(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	const struct diff_pair *made = sentence_greatest(d, f, CATEGORY_activations);
	const struct diff_pair *weights = sentence_greatest(d, f, CATEGORY_parameters);

	made = made ? made : sentence_greatest(d, f, CATEGORY_forward_temporaries);
	sentence_add(s, "%s model: ", f->bytes_new > f->bytes_old ? "A larger" : "A smaller");
	sentence_classes(s, d, f);
	if (made) {
		sentence_add(s, "; ");
		sentence_owner(s, diff_owner(made));
		say_result(s, made);
	}
	if (weights) {
		sentence_add(s, "; parameters of ");
		sentence_owner(s, diff_owner(weights));
	}
}

/* "AdamW" of the range "Optimizer.step#AdamW.step". */
static void add_optimizer(struct sentence *s, const struct diff_side *side)
{
	const struct spans *all = &side->timeline.model.spans;

	for (size_t i = 0; i < all->count; i++) {
		const char *name = defs_string(&side->recording.defs, all->items[i].name).s;
		const char *hash = strchr(name, '#'), *dot = strrchr(name, '.');

		if (all->items[i].phase != PHASE_OPTIMIZER || !hash || !dot || dot < hash)
			continue;
		sentence_add(s, "%.*s", (int)(dot - hash - 1), hash + 1);
		return;
	}
	sentence_add(s, "unknown");
}

static void say_optimizer(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	bool more = f->bytes_new > f->bytes_old;

	sentence_add(s, "%s optimizer state",
		     !d->old_shot.bytes[f->category]   ? "New"
		     : !d->new_shot.bytes[f->category] ? "No"
		     : more			       ? "More"
						       : "Less");
	if (d->old_shot.bytes[CATEGORY_parameters] == d->new_shot.bytes[CATEGORY_parameters])
		sentence_add(s, " for the same parameters");
	sentence_add(s, ", %c", more ? '+' : '-');
	sentence_bytes(s, diff_apart(f->bytes_old, f->bytes_new));
	sentence_add(s, " at ");
	sentence_owner(s, &f->owner);
	sentence_add(s, " (");
	add_optimizer(s, &d->old);
	sentence_add(s, " -> ");
	add_optimizer(s, &d->new);
	sentence_add(s, ")");
}

static void say_gradients(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	uint64_t before = d->old_shot.bytes[f->category], after = d->new_shot.bytes[f->category];
	bool more = f->bytes_new > f->bytes_old;

	if (diff_keeps_gradients(d)) {
		sentence_add(
			s, "%s: %c",
			more ? "More gradients, kept from step to step (set_to_none=False, or no "
			       "zero_grad)"
			     : "Fewer gradients, freed between steps now (zero_grad)",
			more ? '+' : '-');
		sentence_bytes(s, diff_apart(f->bytes_old, f->bytes_new));
		sentence_add(s, " in the %s; the line to read is ", phase_noun(d->new_shot.phase));
		sentence_owner(s, &f->owner);
		return;
	}
	sentence_add(s, "%s gradients in the %s: %c", more ? "More" : "Less",
		     phase_noun(d->new_shot.phase), more ? '+' : '-');
	sentence_bytes(s, diff_apart(f->bytes_old, f->bytes_new));
	if (before < after / 10)
		sentence_add(s,
			     "; there were %s before (set_to_none=False, no zero_grad, or sums "
			     "over several passes)",
			     before ? "hardly any" : "none");
	if (after < before / 10)
		sentence_add(s, "; they are freed before it now");
	sentence_add(s, "; most of it ");
	sentence_owner(s, &f->owner);
	sentence_passes(s, d);
}

static void say_rounding(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	size_t lines = sentence_lines(d, f);

	sentence_add(s,
		     "Blocks of %zu line%s have other remainders, which the allocator leaves in "
		     "blocks over 1 MiB: ",
		     lines, lines == 1 ? "" : "s");
	sentence_classes(s, d, f);
}

static void say_peak(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	enum phase before = diff_phase_at(&d->old, d->old.peak_seq);
	enum phase after = diff_phase_at(&d->new, d->new.peak_seq);

	sentence_add(s,
		     "The peak moved: it was in the %s and is in the %s; in the %s it went from ",
		     phase_noun(before), phase_noun(after),
		     phase_noun(d->new.peak >= d->old.peak ? after : before));
	sentence_bytes(s, f->bytes_old);
	sentence_add(s, " to ");
	sentence_bytes(s, f->bytes_new);
	sentence_add(s, ", mostly by %s of ", category_words(f->category));
	sentence_owner(s, &f->owner);
}

void diff_say(struct diff *d, struct diff_finding *f)
{
	static void (*const say[])(struct sentence *, const struct diff *,
				   const struct diff_finding *) = {
		[CAUSE_LINE] = say_line,
		[CAUSE_FUNCTION] = say_line,
		[CAUSE_KEPT] = say_kept,
		[CAUSE_PRECISION] = say_precision,
		[CAUSE_CASTS] = say_casts,
		[CAUSE_SCALE] = say_scale,
		[CAUSE_MODEL] = say_model,
		[CAUSE_OPTIMIZER] = say_optimizer,
		[CAUSE_GRADIENTS] = say_gradients,
		[CAUSE_TRAINED] = diff_say_trained,
		[CAUSE_RECOMPUTE] = diff_say_recompute,
		[CAUSE_RECORDED] = diff_say_recorded,
		[CAUSE_REACH] = diff_say_reach,
		[CAUSE_PASSES] = diff_say_passes,
		[CAUSE_ROUNDING] = say_rounding,
		[CAUSE_PEAK] = say_peak,
		[CAUSE_COMPILED] = diff_say_compiled,
	};
	struct sentence s = { .len = 0 };

	say[f->cause](&s, d, f);
	if (d->below_peak)
		sentence_add(&s, "; not at the peak but in the %s", phase_noun(d->new_shot.phase));
	sentence_add(&s, ".");
	free(f->text);
	f->text = need_copy(s.text, s.len);
}
