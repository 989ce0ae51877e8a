/* SPDX-License-Identifier: Apache-2.0 */
/* The classes of a peak's blocks: for each its bytes, and the lines that hold most of it. */
#include "../base/sorted.h"
#include "columns.h"
#include "parts.h"
#include "report.h"

#define WHO	22 /* columns for a line of code */
#define HOLDERS 3  /* lines of code to name for a class */

/* The blocks of one name, as `live` calls them: temporaries of earlier steps are kept results. */
struct group {
	const char *words;
	enum category category;
	uint64_t bytes, blocks;
	struct holders lines;
};

/* A row for each group and line, of which the first has the group itself. */
struct report_classes_view {
	const struct snapshot *shot;
	struct group items[2 * CATEGORIES]; /* the largest first */
	size_t count;
};

/* Lines after the first are left out below a tenth of the group or a fiftieth of all. */
static bool class_row(void *ctx, size_t i, struct row_report_class *row)
{
	const struct report_classes_view *v = ctx;
	const struct group *g = &v->items[i / HOLDERS];
	const struct holder *h = &g->lines.items[i % HOLDERS];
	bool first = i % HOLDERS == 0;

	if (i % HOLDERS >= g->lines.count)
		return false;
	*row = (struct row_report_class){ .class = g->words,
					  .bytes = g->bytes,
					  .blocks = g->blocks,
					  .first = first,
					  .holder = h->owner,
					  .held = h->bytes };
	return first || (h->bytes >= g->bytes / 10 && h->bytes >= v->shot->moment.bytes / 50);
}

COMPARE(by_bytes, struct group, ORDER(y->bytes, x->bytes) ?: ORDER(x->category, y->category))

static void find_groups(struct report_classes_view *v, struct timeline *t)
{
	FOR_BLOCKS (b, &v->shot->moment) {
		const char *words = timeline_class_words(t, b->category, b, v->shot->moment.seq);
		struct group *g = FIRST_OF(x, v->items, v->count, x->words == words);

		if (!g)
			g = &v->items[v->count++];
		g->words = words;
		g->category = b->category;
		g->bytes += b->size;
		g->blocks++;
		holders_add(&g->lines, b->category, owners_find(&t->owners, b), b->size);
	}
	SORT(v->items, v->count, by_bytes);
	FOR_EACH (struct group, g, v->items, v->count)
		holders_sort(&g->lines);
}

#define FIRST .when = AT_report_class_first

void report_classes(struct report *r, const struct snapshot *s, struct emit *out)
{
	const char *bytes = moments_state_only(&r->timeline.model) ? "bytes" : "at peak";
	const struct text_column columns[] = {
		TEXT_COLUMN("class", report_class_class, 2, -21, FIRST),
		TEXT_COLUMN(bytes, report_class_bytes, 1, 9, FIRST),
		TEXT_COLUMN("share", report_class_bytes, 1, 5, FIRST, .style = COLUMN_SHARE,
			    .all = s->moment.bytes),
		TEXT_COLUMN("blocks", report_class_blocks, 1, 6, FIRST),
		TEXT_COLUMN("mostly allocated at", report_class_holder, 2, -WHO, .room = WHO),
		TEXT_COLUMN("", report_class_held, 1, 9),
	};
	struct report_classes_view v = { .shot = s };
	struct rows_report_class rows = { 0, class_row, &v };

	find_groups(&v, &r->timeline);
	rows.count = HOLDERS * v.count;
	emit_columns(out, report_class, &rows, columns, 0);
	FOR_EACH (struct group, g, v.items, v.count)
		free(g->lines.items);
	emit_line(out, "%s", "");
}
