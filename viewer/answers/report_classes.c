/* SPDX-License-Identifier: Apache-2.0 */
/* The classes of a peak's blocks: for each its bytes, and the lines that hold most of it. */
#include <stdlib.h>
#include <string.h>

#include "../base/human.h"
#include "parts.h"
#include "report.h"

#define WHO	22 /* columns for a line of code */
#define HOLDERS 3  /* lines of code to name for a class */

struct share {
	enum category category;
	uint64_t bytes, blocks;
	struct holders holders;
};

static int by_bytes(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x->category < y->category ? -1 : x->category > y->category;
}

static void sum_up(struct report *r, const struct moment *mo, struct share shares[CATEGORIES])
{
	for (unsigned i = 0; i < CATEGORIES; i++)
		shares[i] = (struct share){ .category = i };
	for (size_t i = 0; i < mo->count; i++) {
		const struct block *b = &mo->blocks[i];
		struct share *s = &shares[classify(r->classifier, b).category];

		s->bytes += b->size;
		s->blocks++;
		holders_add(&s->holders, (struct holder){ .owner = owners_find(&r->owners, b) },
			    b->size);
	}
	for (unsigned i = 0; i < CATEGORIES; i++)
		holders_sort(&shares[i].holders);
	qsort(shares, CATEGORIES, sizeof(*shares), by_bytes);
}

/* A line below the first, unless it says next to nothing. */
static void next_holder(struct emit *out, const struct share *s, const struct holder *h,
			uint64_t all)
{
	char bytes[HUMAN_MAX], who[OWNER_WORDS];

	if (h->bytes < s->bytes / 10 || h->bytes < all / 50)
		return;
	owner_words_within(&h->owner, who, sizeof(who), WHO);
	emit_line(out, "  %-46s%-*s%10s", "", WHO, who, human_bytes(bytes, h->bytes));
}

static void class_line(struct emit *out, const struct share *s, uint64_t all)
{
	char b[HUMAN_MAX], p[HUMAN_MAX], n[HUMAN_MAX], h[HUMAN_MAX], who[OWNER_WORDS];
	const struct holder *first = &s->holders.items[0];

	human_bytes(h, first->bytes);
	owner_words_within(&first->owner, who, sizeof(who), WHO);
	emit_line(out, "  %-21s%10s%6s%7s  %-*s%10s", category_words(s->category),
		  human_bytes(b, s->bytes), human_share(p, s->bytes, all),
		  human_count(n, s->blocks), WHO, who, h);
	for (size_t i = 1; i < s->holders.count && i < HOLDERS; i++)
		next_holder(out, s, &s->holders.items[i], all);
}

void report_classes(struct report *r, const struct moment *mo, struct emit *out)
{
	struct share shares[CATEGORIES];

	sum_up(r, mo, shares);
	emit_title(out, "  %-21s%10s%6s%7s  %s", "class",
		   moments_state_only(&r->survey) ? "bytes" : "at peak", "share", "blocks",
		   "held mostly by");
	for (unsigned i = 0; i < CATEGORIES; i++) {
		if (shares[i].bytes)
			class_line(out, &shares[i], mo->bytes);
		free(shares[i].holders.items);
	}
	emit_line(out, "%s", "");
}

const uint64_t *report_by_class(struct report *r, const struct moment *mo)
{
	memset(r->by_class, 0, sizeof(r->by_class));
	for (size_t i = 0; i < mo->count; i++)
		r->by_class[classify(r->classifier, &mo->blocks[i]).category] += mo->blocks[i].size;
	return r->by_class;
}
