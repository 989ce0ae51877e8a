/* SPDX-License-Identifier: Apache-2.0 */
/* The classes of a peak's blocks: for each its bytes, and the lines that hold most of it. */
#include <stdlib.h>
#include <string.h>

#include "../documents/columns.h"
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
		holders_add(&s->holders,
			    (struct holder){ .owner = owners_find(&r->timeline.owners, b) },
			    b->size);
	}
	for (unsigned i = 0; i < CATEGORIES; i++)
		holders_sort(&shares[i].holders);
	qsort(shares, CATEGORIES, sizeof(*shares), by_bytes);
}

/* A row of each class and line; the class itself stands in the first of its rows. */
struct view {
	struct share shares[CATEGORIES];
	uint64_t all;
};

/* A line below the first is left out if it says next to nothing. */
static bool class_row(void *ctx, size_t i, struct row_report_class *row)
{
	const struct view *v = ctx;
	const struct share *s = &v->shares[i / HOLDERS];
	size_t k = i % HOLDERS;
	const struct holder *h = &s->holders.items[k];

	if (k >= s->holders.count)
		return false;
	*row = (struct row_report_class){ .class = s->category,
					  .bytes = s->bytes,
					  .blocks = s->blocks,
					  .first = !k,
					  .holder = h->owner,
					  .held = h->bytes };
	return !k || (h->bytes >= s->bytes / 10 && h->bytes >= v->all / 50);
}

#define FIRST .when = AT_report_class_first

void report_classes(struct report *r, const struct moment *mo, struct emit *out)
{
	const char *bytes = moments_state_only(&r->timeline.model) ? "bytes" : "at peak";
	const struct text_column columns[] = {
		TEXT_COLUMN("class", report_class_class, 2, -21, FIRST),
		TEXT_COLUMN(bytes, report_class_bytes, 1, 9, FIRST),
		TEXT_COLUMN("share", report_class_bytes, 1, 5, FIRST, .style = COLUMN_SHARE,
			    .all = mo->bytes),
		TEXT_COLUMN("blocks", report_class_blocks, 1, 6, FIRST),
		TEXT_COLUMN("held mostly by", report_class_holder, 2, -WHO, .room = WHO),
		TEXT_COLUMN("", report_class_held, 1, 9),
	};
	struct view v = { .all = mo->bytes };
	struct rows_report_class rows = { CATEGORIES * HOLDERS, class_row, &v };

	sum_up(r, mo, v.shares);
	emit_columns(out, report_class, &rows, columns, 0);
	for (unsigned i = 0; i < CATEGORIES; i++)
		free(v.shares[i].holders.items);
	emit_line(out, "%s", "");
}

const uint64_t *report_by_class(struct report *r, const struct moment *mo)
{
	memset(r->by_class, 0, sizeof(r->by_class));
	for (size_t i = 0; i < mo->count; i++)
		r->by_class[classify(r->classifier, &mo->blocks[i]).category] += mo->blocks[i].size;
	return r->by_class;
}
