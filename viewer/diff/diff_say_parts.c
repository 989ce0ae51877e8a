/* SPDX-License-Identifier: Apache-2.0 */
#include "diff_say.h"

#include <math.h>

#include "../recording/owner_words.h"

const char *sentence_times(char buf[SENTENCE_TIMES], double factor)
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

const char *sentence_owner(char buf[SENTENCE], const struct owner *o)
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

static const char *words_of(const struct diff_finding *f, unsigned category)
{
	return f->cause == CAUSE_KEPT ? category_kept_words(category) : categories[category].words;
}

const char *sentence_classes(char buf[SENTENCE], const struct diff *d, const struct diff_finding *f)
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
		text_add(buf, SENTENCE, "%s%s %s", buf[0] ? ", " : "", words_of(f, best),
			 CHANGE(by_class[best]));
		by_class[best] = 0;
	}
}

#define PLACES_MOST 4

static bool is_before(const struct diff_pair *a, const struct diff_pair *b)
{
	return diff_size(a) != diff_size(b) ? diff_size(a) > diff_size(b) : a < b;
}

const char *sentence_places(char buf[SENTENCE], const struct diff *d, const struct diff_finding *f)
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
			 CHANGE(diff_delta(next)), words_of(f, next->category),
			 WHO(diff_owner(next)));
	}
	return buf;
}

size_t sentence_lines(const struct diff *d, const struct diff_finding *f)
{
	size_t n = 0;

	for (size_t i = 0; i < d->pair_count; i++) {
		bool again = d->pairs[i].finding != f->id;

		for (size_t j = 0; j < i && !again; j++)
			again = d->pairs[j].finding == f->id &&
				owners_same(diff_owner(&d->pairs[i]), diff_owner(&d->pairs[j]));
		if (!again)
			n++;
	}
	return n;
}

const struct diff_pair *sentence_greatest(const struct diff *d, const struct diff_finding *f,
					  unsigned category)
{
	return GREATEST_OF(p, d->pairs, d->pair_count,
			   p->finding == f->id && p->category == category, diff_size(p));
}

const char *sentence_caller(char buf[SENTENCE], const struct diff *d, const struct diff_finding *f)
{
	const struct diff_site *site = diff_site_of(&d->pairs[f->pair]);

	if (site->caller.file[0])
		snprintf(buf, SENTENCE, ", called at %.1000s", WHO(&site->caller));
	return buf;
}

const char *sentence_passes(char buf[SENTENCE], const struct diff *d)
{
	unsigned before = diff_backwards(&d->old), after = diff_backwards(&d->new);

	if (before && after && before != after)
		snprintf(buf, SENTENCE, "; a step has %u backward pass%s instead of %u", after,
			 after == 1 ? "" : "es", before);
	return buf;
}

const char *sentence_class(const struct diff *d, const struct diff_finding *f)
{
	if (d->no_classes || f->category == CATEGORY_unknown)
		return "memory";
	return words_of(f, f->category);
}
