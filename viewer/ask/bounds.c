/* SPDX-License-Identifier: Apache-2.0 */
#include "bounds.h"

#include "../answers/holders.h"
#include "../answers/leaks.h"
#include "../answers/reserved.h"
#include "../base/human.h"
#include "../diff/diff.h"
#include "../moments/snapshot.h"
#include "../recording/running.h"
#include "../recording/owner_words.h"

/* State while the limits of one recording are checked. */
struct look {
	struct bounds *bounds; /* of the current device */
	struct timeline timeline;
	char where[24]; /* " on device 1" if there are several, else "" */
};

static struct row_check_bound *add_bound(struct bounds *all, struct row_check_bound b,
					 const struct owner *o)
{
	static const struct owner none = { .function = "", .file = "" };

	o = o ? o : &none;
	b.owner = *o;
	b.owner.function = need_text(o->function);
	b.owner.file = need_text(o->file);
	if (!b.ok)
		all->broken++;
	*need_item(all->items, all->count, all->room) = b;
	return &all->items[all->count - 1];
}

__attribute__((format(printf, 2, 3))) static void say(struct row_check_bound *b, const char *format,
						      ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	b->text = vasprintf(&text, format, args) < 0 ? need_text("") : text;
	va_end(args);
}

static void say_more(struct row_check_bound *b, const char *more)
{
	char *before = (char *)b->text;

	say(b, "%s%s", before, more);
	free(before);
}

#define TINY 65536 /* bytes below which a number without a unit was most likely meant with one */

/* A number without a unit is bytes. If a failed limit is tiny, asks whether a unit was meant. */
static void say_unit(struct row_check_bound *b, const struct option_amount *most, const char *unit)
{
	const char *text = most->text;
	char more[96];

	if (b->ok || !b->known || !text || !(most->amount.value > 0) ||
	    most->amount.value >= TINY || text[strspn(text, "0123456789.")])
		return;
	snprintf(more, sizeof(more), "; %.20s is %.20s B: did you mean %.20s%s?", text, text, text,
		 unit);
	say_more(b, more);
}

/* The line that holds the most bytes of a class at a moment (-1: of all classes), copied to out.
 * NULL if no such block is alive then. */
static const struct owner *largest_line(struct look *l, const struct snapshot *shot, int category,
					struct owner *out)
{
	struct holders h = holders_of_blocks(&shot->moment, &l->timeline.owners, category >= 0);
	const struct holder *most =
		FIRST_OF(x, h.items, h.count, category < 0 || (int)x->category == category);
	bool any = most;

	if (any)
		*out = most->owner;
	free(h.items);
	return any ? out : NULL;
}

/* "peak 43.8 GiB: 3.8 GiB more than the 40.0 GiB that are allowed", or that the limit is kept. */
static void say_bytes(const struct look *l, struct row_check_bound *b, const char *what,
		      const char *per, const char *where)
{
	char is[HUMAN_MAX], most[HUMAN_MAX];

	human_bytes(is, b->measured_bytes);
	human_bytes(most, b->limit_bytes);
	if (b->ok)
		say(b, "%s %s%s%s: at most %s are allowed", what, is, per, l->where, most);
	else
		say(b, "%s %s%s%s: %s more than the %s that are allowed%s", what, is, per, l->where,
		    B(b->measured_bytes - b->limit_bytes), most, where);
}

/* Outside of steps a moment is named by a line. If that line holds most, it is printed once. */
static void say_held(const struct look *l, struct row_check_bound *b, const char *what,
		     const char *per, const struct instant *when, const struct owner *o)
{
	char who[OWNER_WORDS] = "", at[INSTANT_MAX + 8] = "", where[OWNER_WORDS + INSTANT_MAX + 40];

	if (o)
		owner_words(o, who, sizeof(who), 0);
	if (strcmp(who, when->text) != 0)
		instant_phrase(when, at, sizeof(at));
	snprintf(where, sizeof(where), "%s%s%s%s", *at ? ", " : "", at, o ? "; most of it " : "",
		 who);
	say_bytes(l, b, what, per, where);
}

static struct row_check_bound measured_bound(const char *name, int category, uint64_t n,
					     const struct option_amount *most)
{
	uint64_t limit = amount_bytes(&most->amount, 0);

	return (struct row_check_bound){ .name = name,
					 MAYBE_THERE(class, category >= 0,
						     category < 0 ? 0 : (unsigned)category),
					 .known = true,
					 .ok = n <= limit,
					 .limit_bytes = limit,
					 .measured_bytes = n };
}

static void check_peak(struct look *l, const struct option_amount *most)
{
	struct timeline *t = &l->timeline;
	const struct peak *peak = &model_curve(&t->model.devices[t->device])->peak;
	struct instant instant;
	struct snapshot shot;
	struct owner line;
	const struct owner *o;
	struct row_check_bound *b;

	snapshot_take(&shot, t, peak->event.seq);
	instant_of_highest(&instant, t);
	o = largest_line(l, &shot, -1, &line);
	b = add_bound(l->bounds, measured_bound("max-peak", -1, peak->bytes, most), o);
	say_held(l, b, "peak", "", &instant, o);
	say_unit(b, most, "GiB");
	moment_free(&shot.moment);
}

static void check_reserved(struct look *l, const struct option_amount *most)
{
	const struct model_device *d = &l->timeline.model.devices[l->timeline.device];
	char words[RESERVED_WORDS + 2] = "; ";
	struct reserved_peak peak;
	struct row_check_bound *b;

	reserved_find(&peak, &l->timeline, l->timeline.device);
	b = add_bound(l->bounds, measured_bound("max-reserved", -1, model_peak_reserved(d), most),
		      peak.bytes ? &peak.owner : NULL);
	if (peak.bytes)
		reserved_words(&peak, words + 2, RESERVED_WORDS);
	say_bytes(l, b, "reserved", "", peak.bytes ? words : "");
	say_unit(b, most, "GiB");
}

/* A class may have its peak at another moment than the run. */
static void check_class(struct look *l, const struct extent *h, int category,
			const struct option_amount *most)
{
	struct row_check_bound b = measured_bound("max-class", category, h->peak, most), *at;
	char what[64];
	struct instant instant = { 0 };
	struct snapshot shot = { 0 };
	struct owner line;
	const struct owner *o;

	if (h->peak_seq) {
		snapshot_take(&shot, &l->timeline, h->peak_seq);
		instant_of_peak(&instant, &l->timeline, h);
	}
	o = largest_line(l, &shot, category, &line);
	snprintf(what, sizeof(what), "peak of %s", categories[category].words);
	at = add_bound(l->bounds, b, o);
	say_held(l, at, what, "", &instant, o);
	say_unit(at, most, "GiB");
	moment_free(&shot.moment);
}

static void check_classes(struct look *l, const struct bounds_wanted *w)
{
	struct extent all[CATEGORIES];
	bool any = false;

	for (int c = 0; c < CATEGORIES; c++)
		any |= w->classes[c].given;
	if (!any)
		return;
	highest_find(all, &l->timeline);
	for (int c = 0; c < CATEGORIES; c++)
		if (w->classes[c].given)
			check_class(l, &all[c], c, &w->classes[c]);
}

/* Adds the failed limit for reserved memory that grows while the blocks stay within the limit. */
static void reserved_grows(struct look *l, const struct option_amount *most, uint64_t growth)
{
	struct reserved_peak peak;
	char words[RESERVED_WORDS + 2] = "; ";
	struct row_check_bound *at;

	reserved_find(&peak, &l->timeline, l->timeline.device);
	reserved_words(&peak, words + 2, RESERVED_WORDS);
	at = add_bound(l->bounds, measured_bound("max-growth", -1, growth, most), &peak.owner);
	say_bytes(l, at, "growth of reserved memory", " a step", words);
	say_unit(at, most, "MiB");
}

static void check_growth(struct look *l, const struct option_amount *most)
{
	struct leaks leaks = { 0 };
	const struct owner *o;
	struct row_check_bound b, *at;
	uint64_t reserved;

	leaks_find(&leaks, &l->timeline);
	o = leaks.count ? &leaks.items[0].owner : NULL;
	b = measured_bound("max-growth", -1, leaks.bytes_per_step, most);
	b.known = leaks.from_step != leaks.to_step;
	if (!b.known)
		b.ok = false;
	reserved = b.ok ? reserved_growth(&l->timeline) : 0;
	if (reserved > b.limit_bytes) {
		reserved_grows(l, most, reserved);
		leaks_free(&leaks);
		return;
	}
	at = add_bound(l->bounds, b, o);
	if (b.known)
		say_held(l, at, "growth", " a step", &(struct instant){ 0 }, o);
	else
		say(at, "growth is not known: %zu step%s found, three complete ones are needed",
		    steps_number(&l->timeline.steps),
		    steps_number(&l->timeline.steps) == 1 ? " was" : "s were");
	say_unit(at, most, "MiB");
	leaks_free(&leaks);
}

/* Allows at least the variation of reserved memory with the order of requests (as `diff` does). */
static void check_reserved_since(struct bounds *all, const struct bounds_wanted *w,
				 const struct diff *d)
{
	uint64_t old = d->old.reserved.bytes, new = d->new.reserved.bytes;
	uint64_t more = amount_bytes(&w->baseline_above.amount, old);
	uint64_t varies = reserved_varies(old);
	struct row_check_bound b = { .name = "baseline", .known = true }, *at;
	char words[RESERVED_WORDS];

	if (!old || !new)
		return;
	b.measured_bytes = new;
	b.limit_bytes = old + (more > varies ? more : varies);
	b.ok = b.measured_bytes <= b.limit_bytes;
	at = add_bound(all, b, &d->new.reserved.owner);
	say(at, "reserved %s -> %s since %s, %s the %s that are allowed%s%s", B_APART(old, new),
	    B_APART(new, old), w->baseline, b.ok ? "within" : "above", B(b.limit_bytes),
	    b.ok ? "" : "; ", b.ok ? "" : reserved_words(&d->new.reserved, words, sizeof(words)));
}

static int check_baseline(struct bounds *all, const struct bounds_wanted *w)
{
	char percent[48];
	struct row_check_bound b = { .name = "baseline", .known = true }, *at;
	struct diff d;
	int rc = diff_make(&d, w->baseline, all->file, w->device);

	if (rc)
		return rc;
	b.measured_bytes = d.new.peak;
	b.limit_bytes = d.old.peak + amount_bytes(&w->baseline_above.amount, d.old.peak);
	b.ok = b.measured_bytes <= b.limit_bytes;
	at = add_bound(all, b, d.count ? &d.findings[0].owner : NULL);
	say(at, "peak %s -> %s: %s (%s) since %s, %s%s%s", B_APART(d.old.peak, d.new.peak),
	    B_APART(d.new.peak, d.old.peak), CHANGE(d.new.peak - d.old.peak),
	    d.old.peak ? diff_percent(percent, d.old.peak, d.new.peak) : "from nothing",
	    w->baseline, b.ok ? "within the " : "above the ", B(b.limit_bytes),
	    b.ok ? " that are allowed" : " that are allowed. ");
	if (!b.ok && d.count)
		say_more(at, d.findings[0].text);
	say_unit(at, &w->baseline_above, "%");
	check_reserved_since(all, w, &d);
	diff_free(&d);
	return 0;
}

static void look_at_bounds(struct look *l, const struct bounds_wanted *w)
{
	if (w->peak.given)
		check_peak(l, &w->peak);
	if (w->reserved.given)
		check_reserved(l, &w->reserved);
	check_classes(l, w);
	if (w->growth.given)
		check_growth(l, &w->growth);
}

/* Adds `more` to the text of each limit that is kept. If not `known`, the limit then fails. */
static void qualify(struct bounds *all, const char *more, bool known)
{
	FOR_EACH (struct row_check_bound, b, all->items, all->count) {
		if (!b->ok)
			continue;
		say_more(b, more);
		b->ok = b->known = known;
		if (!known)
			all->broken++;
	}
}

/* Adds the recording's state to each result. A damaged file fails every limit, because a part with
 * a higher peak may be missing. A recording without the run's end is checked as far as it goes, and
 * the sentence says so. */
static void qualify_state(struct bounds *all, enum recording_state state)
{
	static const char *const words[] = {
		[STATE_DAMAGED] = "; not known: the file is damaged (see gpumemtrace verify)",
		[STATE_RUNNING] = "; so far: the program is still running",
		[STATE_NO_END] = "; up to where the program was killed or crashed",
		[STATE_A_PART] = "; up to where the recording stops, before the run's end",
		[STATE_SEARCH] = "; up to where gpumemtrace ended the run",
	};

	if (state != STATE_WHOLE)
		qualify(all, words[state], state != STATE_DAMAGED);
}

/* Lost events may have been allocations, so every limit counts as failed. */
static void qualify_dropped(struct bounds *all, uint64_t dropped)
{
	char more[HUMAN_MANY + 64];

	snprintf(more, sizeof(more), "; not known: %s %s lost while recording",
		 MANY(dropped, "event"), dropped == 1 ? "was" : "were");
	if (dropped)
		qualify(all, more, false);
}

/* A limit that fails on one device fails, also if it cannot be checked there. Else the device with
 * the most measured bytes is reported. */
static bool is_worse(const struct row_check_bound *a, const struct row_check_bound *than)
{
	if (a->ok != than->ok)
		return !a->ok;
	if (a->known != than->known)
		return a->known;
	return a->measured_bytes > than->measured_bytes;
}

/* Replaces each result by another device's if that is worse. Both lists are in the same order. */
static void merge_device(struct bounds *all, struct bounds *of_device)
{
	for (size_t i = 0; i < of_device->count; i++) {
		struct row_check_bound *kept = &all->items[i], *it = &of_device->items[i],
				       before = *kept;

		if (!is_worse(it, kept))
			continue;
		if (!it->ok)
			all->broken++;
		all->broken -= !kept->ok;
		*kept = *it;
		*it = before;
	}
	bounds_free(of_device);
}

static void look_at_device(struct look *l, struct bounds *all, const struct bounds_wanted *w,
			   int device)
{
	struct bounds of_device = { .file = all->file };

	timeline_look(&l->timeline, device);
	l->bounds = &of_device;
	look_at_bounds(l, w);
	merge_device(all, &of_device);
}

/* Limits apply to each device; the one with the highest peak comes first. */
static void look_at_devices(struct look *l, const struct bounds_wanted *w)
{
	const struct model_device *devices = l->timeline.model.devices;
	struct bounds *all = l->bounds;
	int main = l->timeline.device, others = 0;

	for (int d = 0; d < MODEL_DEVICES && w->device < 0; d++)
		if (d != main && model_has_memory(&devices[d]))
			others++;
	if (others)
		snprintf(l->where, sizeof(l->where), " on device %d", main);
	look_at_bounds(l, w);
	for (int d = 0; d < MODEL_DEVICES && others; d++) {
		snprintf(l->where, sizeof(l->where), " on device %d", d);
		if (d != main && model_has_memory(&devices[d]))
			look_at_device(l, all, w, d);
	}
}

int bounds_find(struct bounds *b, const char *file, const struct bounds_wanted *w)
{
	enum recording_state state = STATE_WHOLE;
	struct look l = { .bounds = b };
	uint64_t dropped = 0;
	struct recording r;
	int rc = recording_open(&r, file);

	*b = (struct bounds){ .file = file };
	if (rc)
		return rc;
	rc = timeline_open(&l.timeline, &r, w->device);
	if (!rc) {
		look_at_devices(&l, w);
		if (moments_state_only(&l.timeline.model))
			qualify(b, "; at the one moment that is recorded", true);
		state = recording_state(&r);
		dropped = l.timeline.model.dropped;
		timeline_close(&l.timeline);
	}
	recording_close(&r);
	if (!rc && w->baseline)
		rc = check_baseline(b, w);
	qualify_state(b, state);
	qualify_dropped(b, dropped);
	return rc;
}

void bounds_free(struct bounds *b)
{
	FOR_EACH (struct row_check_bound, x, b->items, b->count) {
		free((char *)x->owner.function);
		free((char *)x->owner.file);
		free((char *)x->text);
	}
	free(b->items);
	*b = (struct bounds){ 0 };
}
