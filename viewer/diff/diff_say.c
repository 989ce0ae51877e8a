/* SPDX-License-Identifier: Apache-2.0 */
/* A finding in one sentence: what changed, by how many bytes, where. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../base/human.h"
#include "../base/need.h"
#include "diff.h"

struct sentence {
	char text[1200];
	size_t len;
};

static void add(struct sentence *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct sentence *s, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(s->text + s->len, sizeof(s->text) - s->len, format, args);
	va_end(args);
	if (n > 0)
		s->len += (size_t)n;
	if (s->len >= sizeof(s->text))
		s->len = sizeof(s->text) - 1;
}

static void add_owner(struct sentence *s, const struct owner *o)
{
	if (o->file[0])
		add(s, "%.80s %.60s:%u", o->function, owners_base(o->file), o->line);
	else
		add(s, "%.80s%s", o->function[0] ? o->function : "(no stack)",
		    o->backward ? " (backward)" : "");
}

static void add_bytes(struct sentence *s, uint64_t bytes)
{
	char b[HUMAN_MAX];

	add(s, "%s", human_bytes(b, bytes));
}

static uint64_t apart(uint64_t a, uint64_t b)
{
	return a < b ? b - a : a - b;
}

/* The changes of the finding's classes, the greatest first: "activations +3.0 MiB, ..." */
static void add_classes(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	int64_t by_class[CATEGORIES] = { 0 };
	const char *comma = "";

	for (size_t i = 0; i < d->pair_count; i++)
		if (d->pairs[i].finding == f->id)
			by_class[d->pairs[i].category] += diff_delta(&d->pairs[i]);
	for (;;) {
		unsigned best = 0;
		char b[HUMAN_MAX];

		for (unsigned c = 1; c < CATEGORIES; c++)
			if (llabs(by_class[c]) > llabs(by_class[best]))
				best = c;
		if (!by_class[best])
			return;
		add(s, "%s%s %c%s", comma, category_words(best), by_class[best] < 0 ? '-' : '+',
		    human_bytes(b, (uint64_t)llabs(by_class[best])));
		by_class[best] = 0;
		comma = ", ";
	}
}

static size_t lines_of(const struct diff *d, const struct diff_finding *f)
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

/* The pair of that class with the greatest change; NULL: none. */
static const struct diff_pair *greatest(const struct diff *d, const struct diff_finding *f,
					unsigned category)
{
	const struct diff_pair *best = NULL;

	for (size_t i = 0; i < d->pair_count; i++) {
		const struct diff_pair *p = &d->pairs[i];

		if (p->finding == f->id && p->category == category &&
		    (!best || llabs(diff_delta(p)) > llabs(diff_delta(best))))
			best = p;
	}
	return best;
}

/* The most backward passes that a step had. */
static unsigned passes(const struct diff_side *s)
{
	const struct steps *steps = &s->timeline.steps;
	unsigned most = 0;

	for (size_t i = 1; i <= steps_number(steps); i++)
		if (steps->items[i].times[PHASE_BACKWARD] > most)
			most = steps->items[i].times[PHASE_BACKWARD];
	return most;
}

static void add_passes(struct sentence *s, const struct diff *d)
{
	unsigned before = passes(&d->old), after = passes(&d->new);

	if (before && after && before != after)
		add(s, "; a step has %u backward pass%s, had %u", after, after == 1 ? "" : "es",
		    before);
}

/* ---- one for each cause */

static void say_line(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	size_t lines = lines_of(d, f);

	if (f->kind == DIFF_NEW || f->kind == DIFF_GONE)
		add(s, "%s: %s of ", f->kind == DIFF_NEW ? "New" : "Gone",
		    category_words(f->category));
	else
		add(s, "%s %s of ", f->kind == DIFF_GROWN ? "More" : "Less",
		    category_words(f->category));
	add_owner(s, &f->owner);
	if (f->kind != DIFF_GONE && !d->pairs[f->pair].new_site)
		add(s, " of the old version");
	if (lines > 1)
		add(s, " and %zu other line%s", lines - 1, lines > 2 ? "s" : "");
	add(s, ": ");
	if (f->kind == DIFF_GROWN || f->kind == DIFF_SHRUNK) {
		add_bytes(s, f->bytes_old);
		add(s, " -> ");
		add_bytes(s, f->bytes_new);
		add(s, ", ");
	}
	add(s, "%c", f->bytes_new < f->bytes_old ? '-' : '+');
	add_bytes(s, apart(f->bytes_old, f->bytes_new));
	if (f->blocks_old != f->blocks_new)
		add(s, " (%" PRIu64 " block%s, were %" PRIu64 ")", f->blocks_new,
		    f->blocks_new == 1 ? "" : "s", f->blocks_old);
	else if (f->blocks_old)
		add(s, " (each block %.3g times as large)",
		    (double)f->bytes_new / (double)f->bytes_old);
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

	add(s, gained ? "Kept from step to step: " : "No longer kept from step to step: ");
	add_bytes(s, per_step(d, f, gained ? &d->new_leaks : &d->old_leaks));
	add(s, gained ? " more with every step (a list, or a result kept with its graph); "
		      : " with every step before; ");
	add_classes(s, d, f);
	add(s, "; most of it ");
	add_owner(s, &f->owner);
}

static void say_precision(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	add(s, "All is %.3g times as large, the parameters too, as with another precision: ",
	    f->factor);
	add_classes(s, d, f);
	add(s, "; most of it ");
	add_owner(s, &f->owner);
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
	const struct diff_pair *inputs = greatest(d, f, CATEGORY_inputs);

	if (inputs) {
		add(s, "The inputs are %.3g times as large (", f->factor);
		add_owner(s, diff_owner(inputs));
		add(s, "), as with another batch or sequence, and so is what a pass makes: ");
	} else if (inputs_stayed(d)) {
		add(s,
		    "What a pass makes is %.3g times as large, the inputs are not, as with "
		    "another precision or width: ",
		    f->factor);
	} else {
		add(s,
		    "What a pass makes is %.3g times as large, as with another batch or "
		    "sequence: ",
		    f->factor);
	}
	add_classes(s, d, f);
	if (f->square)
		add(s, "; some even %.3g times, as scores between tokens are",
		    f->factor * f->factor);
	add(s, "; most of it ");
	add_owner(s, &f->owner);
	add_passes(s, d);
}

static void say_model(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	const struct diff_pair *made = greatest(d, f, CATEGORY_activations);
	const struct diff_pair *weights = greatest(d, f, CATEGORY_parameters);

	made = made ? made : greatest(d, f, CATEGORY_forward_temporaries);
	add(s, "%s model: ", f->bytes_new > f->bytes_old ? "A larger" : "A smaller");
	add_classes(s, d, f);
	if (made) {
		add(s, "; ");
		add_owner(s, diff_owner(made));
		add(s, " holds %" PRIu64 " block%s, were %" PRIu64, made->blocks_new,
		    made->blocks_new == 1 ? "" : "s", made->blocks_old);
	}
	if (weights) {
		add(s, "; parameters of ");
		add_owner(s, diff_owner(weights));
	}
}

/* "AdamW" of the range "Optimizer.step#AdamW.step". */
static void add_optimizer(struct sentence *s, const struct diff_side *side)
{
	const struct spans *all = &side->timeline.spans;

	for (size_t i = 0; i < all->count; i++) {
		const char *name = defs_string(&side->recording.defs, all->items[i].name).s;
		const char *hash = strchr(name, '#'), *dot = strrchr(name, '.');

		if (all->items[i].phase != PHASE_OPTIMIZER || !hash || !dot || dot < hash)
			continue;
		add(s, "%.*s", (int)(dot - hash - 1), hash + 1);
		return;
	}
	add(s, "unknown");
}

static void say_optimizer(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	bool more = f->bytes_new > f->bytes_old;

	add(s, "%s optimizer state",
	    f->kind == DIFF_NEW	   ? "New"
	    : f->kind == DIFF_GONE ? "No"
	    : more		   ? "More"
				   : "Less");
	if (d->old_shot.bytes[CATEGORY_parameters] == d->new_shot.bytes[CATEGORY_parameters])
		add(s, " for the same parameters");
	add(s, ", %c", more ? '+' : '-');
	add_bytes(s, apart(f->bytes_old, f->bytes_new));
	add(s, " at ");
	add_owner(s, &f->owner);
	add(s, " (");
	add_optimizer(s, &d->old);
	add(s, " -> ");
	add_optimizer(s, &d->new);
	add(s, ")");
}

static void say_gradients(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	bool more = f->bytes_new > f->bytes_old;

	add(s, "%s gradients in the %s: %c", more ? "More" : "Less", phase_text(d->new_shot.phase),
	    more ? '+' : '-');
	add_bytes(s, apart(f->bytes_old, f->bytes_new));
	if (f->kind == DIFF_NEW)
		add(s, "; they were not there before (set_to_none=False, no zero_grad, or sums "
		       "over several passes)");
	if (f->kind == DIFF_GONE)
		add(s, "; they are given back before it now");
	add(s, "; most of it ");
	add_owner(s, &f->owner);
	add_passes(s, d);
}

static void say_recompute(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	add(s, "Activations are %s in backward (checkpointing): ",
	    d->new.recomputes ? "now made again" : "no longer made again");
	add_bytes(s, apart(f->bytes_old, f->bytes_new));
	add(s, " %s of them kept, in %zu lines, most of it ",
	    f->bytes_new < f->bytes_old ? "less" : "more", lines_of(d, f));
	add_owner(s, &f->owner);
}

static void say_peak(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	enum phase before = diff_phase_at(&d->old, d->old.peak_seq);
	enum phase after = diff_phase_at(&d->new, d->new.peak_seq);

	add(s, "The peak moved: it was in the %s and is in the %s; in the %s it went from ",
	    phase_text(before), phase_text(after),
	    phase_text(d->new.peak >= d->old.peak ? after : before));
	add_bytes(s, f->bytes_old);
	add(s, " to ");
	add_bytes(s, f->bytes_new);
	add(s, ", mostly by %s of ", category_words(f->category));
	add_owner(s, &f->owner);
}

void diff_say(struct diff *d, struct diff_finding *f)
{
	static void (*const say[])(struct sentence *, const struct diff *,
				   const struct diff_finding *) = {
		[CAUSE_LINE] = say_line,	   [CAUSE_FUNCTION] = say_line,
		[CAUSE_KEPT] = say_kept,	   [CAUSE_PRECISION] = say_precision,
		[CAUSE_SCALE] = say_scale,	   [CAUSE_MODEL] = say_model,
		[CAUSE_OPTIMIZER] = say_optimizer, [CAUSE_GRADIENTS] = say_gradients,
		[CAUSE_RECOMPUTE] = say_recompute, [CAUSE_PEAK] = say_peak,
	};
	struct sentence s = { .len = 0 };

	say[f->cause](&s, d, f);
	if (d->below_peak)
		add(&s, "; not at the peak but in the %s", phase_text(d->new_shot.phase));
	add(&s, ".");
	free(f->text);
	f->text = need_copy(s.text, s.len);
}
