/* SPDX-License-Identifier: Apache-2.0 */
/* What the sentences of findings are put together from. */
#include "diff_sentence.h"

#include <stdarg.h>
#include <stdlib.h>

#include "../stacks/owner_words.h"
#include "../base/human.h"

void sentence_add(struct sentence *s, const char *format, ...)
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

void sentence_owner(struct sentence *s, const struct owner *o)
{
	char place[OWNER_WORDS];

	if (o->file[0] && o->line)
		sentence_add(s, "%.120s %s", o->function, owner_place(o, place, sizeof(place), 0));
	else
		sentence_add(s, "%.80s%s", o->function[0] ? o->function : "(no stack)",
			     o->backward ? " (backward)" : "");
}

void sentence_bytes(struct sentence *s, uint64_t bytes)
{
	char b[HUMAN_MAX];

	sentence_add(s, "%s", human_bytes(b, bytes));
}

/* The changes of the finding's classes, the greatest first: "activations +3.0 MiB, ..." */
void sentence_classes(struct sentence *s, const struct diff *d, const struct diff_finding *f)
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
		sentence_add(s, "%s%s %c%s", comma, category_words(best),
			     by_class[best] < 0 ? '-' : '+',
			     human_bytes(b, (uint64_t)llabs(by_class[best])));
		by_class[best] = 0;
		comma = ", ";
	}
}

size_t sentence_lines(const struct diff *d, const struct diff_finding *f)
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
const struct diff_pair *sentence_greatest(const struct diff *d, const struct diff_finding *f,
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

/* Where the model was called: what the line of a module does not say. */
void sentence_caller(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	const struct diff_pair *p = &d->pairs[f->pair];
	const struct diff_site *site = p->new_site ? p->new_site : p->old_site;

	if (!site->caller.file[0])
		return;
	sentence_add(s, ", called at ");
	sentence_owner(s, &site->caller);
}

void sentence_passes(struct sentence *s, const struct diff *d)
{
	unsigned before = diff_backwards(&d->old), after = diff_backwards(&d->new);

	if (before && after && before != after)
		sentence_add(s, "; a step has %u backward pass%s, had %u", after,
			     after == 1 ? "" : "es", before);
}
