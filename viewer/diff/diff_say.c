/* SPDX-License-Identifier: Apache-2.0 */
/* A finding as one sentence: the change, its bytes, its place; one function a cause
 * (diff_causes.def). */
#include "diff_say.h"

#include "../model/optimizers.h"

/* A copy of all weights (an average, a teacher, a snapshot). One that an optimizer keeps is
 * state. */
static bool is_copy_of_all(const struct diff *d, const struct diff_finding *f)
{
	const struct diff_shot *shot = f->kind == DIFF_NEW ? &d->old.shot : &d->new.shot;
	uint64_t weights = shot->bytes[CATEGORY_parameters];
	uint64_t bytes = f->kind == DIFF_NEW ? f->bytes_new : f->bytes_old;

	return !d->no_classes && (f->kind == DIFF_NEW || f->kind == DIFF_GONE) && weights &&
	       (f->category == CATEGORY_parameters || f->category == CATEGORY_optimizer_state) &&
	       diff_apart(bytes, weights) < weights / 20;
}

/* Whether the optimizer calls other functions now: for all parameters at once, or for each. */
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

static bool same_state(const struct diff *d)
{
	uint64_t before = d->old.shot.bytes[CATEGORY_optimizer_state];

	return before &&
	       diff_apart(before, d->new.shot.bytes[CATEGORY_optimizer_state]) < before / 20;
}

struct say {
	FILE *s;
	const struct diff *d;
	const struct diff_finding *f;
	bool more; /* the new side has more bytes */
};

static void say_most(const struct say *x)
{
	fprintf(x->s, "%s; most of it %s", sentence_classes(PART, x->d, x->f), WHO(&x->f->owner));
}

static void say_most_and_caller(const struct say *x)
{
	say_most(x);
	fputs(sentence_caller(PART, x->d, x->f), x->s);
}

static void say_line_change(const struct say *x)
{
	const struct diff_finding *f = x->f;

	if (f->bytes_old && f->bytes_new)
		fprintf(x->s, "%s -> %s, ", B_TO_B(f->bytes_old, f->bytes_new));
	fputs(CHANGE(f->bytes_new - f->bytes_old), x->s);
	if (f->blocks_old != f->blocks_new)
		fprintf(x->s, " (%" PRIu64 " block%s, were %" PRIu64 ")", f->blocks_new,
			S(f->blocks_new), f->blocks_old);
	else if (f->blocks_old)
		fprintf(x->s, " (%s %s as large)",
			f->blocks_old == 1 ? "the block is" : "the blocks are",
			TIMES((double)f->bytes_new / (double)f->bytes_old));
}

static void say_line(const struct say *x)
{
	static const char *const kinds[] = { [DIFF_GROWN] = "More ",
					     [DIFF_SHRUNK] = "Less ",
					     [DIFF_NEW] = "New: ",
					     [DIFF_GONE] = "Gone: " };
	const struct diff_pair *first = &x->d->pairs[x->f->pair];
	bool old_line = x->f->kind != DIFF_GONE && !first->new_site;
	size_t lines = sentence_lines(x->d, x->f);

	fprintf(x->s, "%s%s of %s%s", kinds[x->f->kind], sentence_class(x->d, x->f),
		WHO(&x->f->owner), old_line ? " of the old version" : "");
	if (lines > 1)
		fprintf(x->s, " and %zu other line%s", lines - 1, S(lines - 1));
	fputs(": ", x->s);
	say_line_change(x);
	if (is_copy_of_all(x->d, x->f))
		fputs("; as large as all parameters, like a copy of them", x->s);
	if (steps_otherwise(first))
		fprintf(x->s, "; made by %.60s, before by %.60s", first->new_site->op,
			first->old_site->op);
	if (x->f->cause == CAUSE_FUNCTION)
		fputs(sentence_caller(PART, x->d, x->f), x->s);
}

static void say_kept(const struct say *x)
{
	if (x->more)
		fprintf(x->s,
			"Kept from step to step: %s more with every step (a list, or a result kept "
			"with its graph); ",
			B(leaks_per_step(x->d, x->f, &x->d->new)));
	else
		fprintf(x->s, "No longer kept from step to step: %s with every step before; ",
			B(leaks_per_step(x->d, x->f, &x->d->old)));
	say_most(x);
}

static void say_idle(const struct say *x)
{
	fprintf(x->s, "Models that are no longer trained, or their optimizers, are %s in memory: ",
		x->more ? "still" : "no longer");
	say_most_and_caller(x);
}

static void say_precision(const struct say *x)
{
	fprintf(x->s,
		"All memory is %s as large, including the parameters, as with another precision: ",
		TIMES(x->f->factor));
	say_most(x);
}

static void say_elements(const struct say *x)
{
	const struct diff_pair *weights = sentence_greatest(x->d, x->f, CATEGORY_parameters);

	if (weights)
		fprintf(x->s,
			"The same parameters in another precision: %" PRIu64
			" of them are %s as large (%s): ",
			x->f->count, TIMES(x->f->factor), WHO(diff_owner(weights)));
	say_most_and_caller(x);
}

static void say_casts(const struct say *x)
{
	fputs(x->d->new.casts
		      ? "Results are cast to another precision (autocast), the parameters are not: "
		      : "Results are no longer cast to another precision (autocast): ",
	      x->s);
	say_most(x);
}

static void say_scale(const struct say *x)
{
	const struct diff_pair *inputs = sentence_greatest(x->d, x->f, CATEGORY_inputs);
	double factor = x->f->factor;

	if (inputs)
		fprintf(x->s,
			"The inputs are %s as large (%s), as with another batch or sequence, and "
			"so "
			"are the results of a pass: ",
			TIMES(factor), WHO(diff_owner(inputs)));
	else
		fprintf(x->s, "The results of a pass are %s as large, %s: ", TIMES(factor),
			inputs_stayed(x->d)
				? "but the inputs are not, as with another precision or width"
				: "as with another batch or sequence");
	fputs(sentence_classes(PART, x->d, x->f), x->s);
	if (x->f->square)
		fprintf(x->s, "; some are %s as large, like scores between tokens",
			TIMES(factor * factor));
	fprintf(x->s, "; most of it %s%s", WHO(&x->f->owner), sentence_passes(PART, x->d));
}

static void say_model(const struct say *x)
{
	const struct diff_pair *weights = sentence_greatest(x->d, x->f, CATEGORY_parameters);
	const struct diff_pair *made = sentence_greatest(x->d, x->f, CATEGORY_activations);

	made = made ? made : sentence_greatest(x->d, x->f, CATEGORY_forward_temporaries);
	fprintf(x->s, "A %s model: %s", x->more ? "larger" : "smaller",
		sentence_classes(PART, x->d, x->f));
	if (made && is_larger(made))
		fprintf(x->s, "; %s holds blocks %s as large", WHO(diff_owner(made)),
			TIMES((double)made->bytes_new / (double)made->bytes_old));
	else if (made)
		fprintf(x->s, "; %s holds %" PRIu64 " block%s, were %" PRIu64,
			WHO(diff_owner(made)), made->blocks_new, S(made->blocks_new),
			made->blocks_old);
	if (weights)
		fprintf(x->s, "; parameters of %s", WHO(diff_owner(weights)));
}

static void say_trained(const struct say *x)
{
	const struct diff_shot *old = &x->d->old.shot, *new = &x->d->new.shot;
	bool more = new->trained > old->trained;

	fprintf(x->s, "%s of the parameters are trained (%s of %s, were %s of %s)",
		more ? "More" : "Fewer", B(new->trained), B(new->bytes[CATEGORY_parameters]),
		B(old->trained), B(old->bytes[CATEGORY_parameters]));
	if (same_state(x->d))
		fprintf(x->s,
			" but the optimizer holds as much as before, as %s torch.no_grad() or "
			".detach(): ",
			more ? "without" : "with");
	else
		fprintf(x->s, ", as with layers %s: ", more ? "unfrozen" : "frozen");
	say_most_and_caller(x);
}

/* The finding's class, at the compared moments and at the peaks. */
static void say_optimizer(const struct say *x)
{
	enum category c = x->f->category;
	const struct diff_side *old = &x->d->old, *new = &x->d->new;
	bool was = old->shot.bytes[c] || old->at_peak.bytes[c];
	bool is = new->shot.bytes[c] || new->at_peak.bytes[c];
	bool same = old->shot.bytes[CATEGORY_parameters] == new->shot.bytes[CATEGORY_parameters];

	fprintf(x->s, "%s optimizer state%s, %s at %s (%s -> %s)",
		!was	  ? "New"
		: !is	  ? "No"
		: x->more ? "More"
			  : "Less",
		same ? " for the same parameters" : "", CHANGE(x->f->bytes_new - x->f->bytes_old),
		WHO(&x->f->owner), optimizer(old, PART), optimizer(new, PART));
}

static void say_kept_gradients(const struct say *x)
{
	fprintf(x->s, "%s: %s in the %s; the line to read is %s",
		x->more ? "More gradients, kept from step to step (set_to_none=False, or no "
			  "zero_grad)"
			: "Fewer gradients, freed between steps now (zero_grad)",
		CHANGE(x->f->bytes_new - x->f->bytes_old), phases[x->d->new.shot.phase].noun,
		WHO(&x->f->owner));
}

static void say_few_gradients(const struct say *x)
{
	uint64_t before = x->d->old.shot.bytes[x->f->category];
	uint64_t after = x->d->new.shot.bytes[x->f->category];

	if (before < after / 10)
		fprintf(x->s,
			"; there were %s before (set_to_none=False, no zero_grad, or sums over "
			"several passes)",
			before ? "hardly any" : "none");
	if (after < before / 10)
		fprintf(x->s, "; the new recording has %s at that moment",
			after ? "hardly any" : "none");
}

static void say_gradients(const struct say *x)
{
	bool kept = diff_keeps_gradients(x->d);
	bool had = diff_has_gradients(&x->d->old), has = diff_has_gradients(&x->d->new);

	if (kept)
		say_kept_gradients(x);
	else
		fprintf(x->s, "%s gradients in the %s: %s", x->more ? "More" : "Fewer",
			phases[x->d->new.shot.phase].noun,
			CHANGE(x->f->bytes_new - x->f->bytes_old));
	if (!had)
		fputs("; the old recording has no backward pass", x->s);
	if (!has)
		fputs("; the new recording has no backward pass", x->s);
	if (kept)
		return;
	if (had && has)
		say_few_gradients(x);
	fprintf(x->s, "; most of it %s%s", WHO(&x->f->owner), sentence_passes(PART, x->d));
}

static void say_recompute(const struct say *x)
{
	fprintf(x->s,
		"Activations are %s in backward (checkpointing): %s %s is kept, in %zu lines, most "
		"of it %s",
		x->d->new.recomputes ? "now recomputed" : "no longer recomputed",
		B(diff_apart(x->f->bytes_old, x->f->bytes_new)),
		x->f->bytes_new < x->f->bytes_old ? "less" : "more", sentence_lines(x->d, x->f),
		WHO(&x->f->owner));
}

static void say_compiled(const struct say *x)
{
	fprintf(x->s,
		"The model is %s (torch.compile), so other code allocates the results of a pass: ",
		x->d->new.compiled ? "now compiled" : "no longer compiled");
	say_most(x);
}

static void say_recorded(const struct say *x)
{
	fprintf(x->s, "Forward passes without a backward pass %s a graph, as %s torch.no_grad(): ",
		x->more ? "now build" : "no longer build", x->more ? "without" : "with");
	say_most_and_caller(x);
}

static void say_reach(const struct say *x)
{
	uint64_t before = diff_gradients(&x->d->old), after = diff_gradients(&x->d->new);
	const struct owner *first = diff_owner(&x->d->pairs[x->f->pair]);

	fprintf(x->s,
		"Backward goes %s: %" PRIu64 " gradients arrive at parameters in a step instead of "
		"%" PRIu64 ", as with a result that is %s: ",
		after > before ? "further" : "less far", after, before,
		after > before ? "no longer detached" : "detached now");
	fprintf(x->s, "%s; most of it %s%s", sentence_classes(PART, x->d, x->f), WHO(first),
		sentence_caller(PART, x->d, x->f));
	if (!owners_same(first, &x->f->owner))
		fprintf(x->s, ", in the pass back from %s", WHO(&x->f->owner));
}

static void say_passes(const struct say *x)
{
	size_t before = x->d->old.shot.passes, after = x->d->new.shot.passes;

	fprintf(x->s, "Results of %zu forward pass%s are held at once instead of %zu%s: ", after,
		after == 1 ? "" : "es", before,
		after > before ? ", as with one backward pass for several losses" : "");
	say_most_and_caller(x);
	fputs(sentence_passes(PART, x->d), x->s);
}

static void say_backwards(const struct say *x)
{
	unsigned after = diff_backwards(&x->d->new);

	fprintf(x->s, "A step has %u backward pass%s instead of %u, so results are %s: ", after,
		after == 1 ? "" : "es", diff_backwards(&x->d->old),
		x->more ? "held until a later pass frees them" : "freed earlier");
	say_most_and_caller(x);
}

static void say_rounding(const struct say *x)
{
	size_t lines = sentence_lines(x->d, x->f);

	fprintf(x->s,
		"Blocks of %zu line%s have other remainders, which the allocator leaves in blocks "
		"over 1 MiB: %s",
		lines, S(lines), sentence_classes(PART, x->d, x->f));
}

static void say_moved(const struct say *x)
{
	fprintf(x->s, "Moved, %s together: %s", CHANGE(x->f->bytes_new - x->f->bytes_old),
		sentence_places(PART, x->d, x->f));
}

static void say_peak(const struct say *x)
{
	enum phase was_in = diff_phase_at(&x->d->old, x->d->old.peak_seq);
	enum phase is_in = diff_phase_at(&x->d->new, x->d->new.peak_seq);
	const char *looked = phases[x->d->new.peak >= x->d->old.peak ? is_in : was_in].noun;

	fprintf(x->s, "The peak moved: it was in the %s and is in the %s; ", phases[was_in].noun,
		phases[is_in].noun);
	if (x->f->bytes_old && x->f->bytes_new)
		fprintf(x->s, "in the %s it went from %s to %s, mostly by %s of %s", looked,
			B_TO_B(x->f->bytes_old, x->f->bytes_new), sentence_class(x->d, x->f),
			WHO(&x->f->owner));
	else
		fprintf(x->s, "the %s recording has no %s", x->f->bytes_old ? "new" : "old",
			looked);
}

static void say_reserved(const struct say *x)
{
	const struct diff_side *larger = x->more ? &x->d->new : &x->d->old;

	fprintf(x->s,
		"PyTorch reserves %s memory of the device: at most %s instead of %s, while the "
		"peak "
		"of the blocks changed by %s; in the %s recording %s",
		x->more ? "more" : "less", B(x->f->bytes_new), B(x->f->bytes_old),
		CHANGE(x->d->new.peak - x->d->old.peak), x->more ? "new" : "old",
		reserved_words(&larger->reserved, (char[RESERVED_WORDS]){ 0 }, RESERVED_WORDS));
}

static void (*const say_cause[])(const struct say *) = {
#define CAUSE(cause, name, say) [CAUSE_##cause] = say,
#include "diff_causes.def"
};

void diff_say(struct diff *d, struct diff_finding *f)
{
	size_t len;
	FILE *s;

	free(f->text);
	s = need_stream(&f->text, &len);
	say_cause[f->cause](&(struct say){ s, d, f, f->bytes_new > f->bytes_old });
	if (d->below_peak && f->cause != CAUSE_RESERVED)
		fprintf(s, "; not at the peak but in the %s", phases[d->new.shot.phase].noun);
	fputc('.', s);
	fclose(s);
}
