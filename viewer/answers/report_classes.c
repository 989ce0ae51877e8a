/* SPDX-License-Identifier: Apache-2.0 */
/* The classes of a peak's blocks: for each its bytes, and the lines that hold most of it. */
#include "columns.h"
#include "parts.h"
#include "report.h"

#define WHO	22 /* columns for a line of code */
#define HOLDERS 3  /* lines of code to name for a class */

/* A row for each class and line, of which the first has the class itself. */
struct report_classes_view {
	const struct snapshot *shot;
	unsigned order[CATEGORIES]; /* the largest class first */
	struct holders lines;
};

static const struct holder *nth_of_class(const struct holders *lines, enum category c, size_t nth)
{
	FOR_EACH (const struct holder, h, lines->items, lines->count)
		if (h->category == c && nth-- == 0)
			return h;
	return NULL;
}

/* Lines after the first are left out below a tenth of the class or a fiftieth of all. */
static bool class_row(void *ctx, size_t i, struct row_report_class *row)
{
	const struct report_classes_view *v = ctx;
	enum category c = v->order[i / HOLDERS];
	const struct holder *h = nth_of_class(&v->lines, c, i % HOLDERS);
	bool first = i % HOLDERS == 0;

	if (!h)
		return false;
	*row = (struct row_report_class){ .class = c,
					  .bytes = v->shot->bytes[c],
					  .blocks = v->shot->blocks[c],
					  .first = first,
					  .holder = h->owner,
					  .held = h->bytes };
	return first ||
	       (h->bytes >= v->shot->bytes[c] / 10 && h->bytes >= v->shot->moment.bytes / 50);
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
	struct report_classes_view v = {
		.shot = s, .lines = holders_of_blocks(&s->moment, &r->timeline.owners, true)
	};
	struct rows_report_class rows = { HOLDERS * classes_by_bytes(s->bytes, v.order), class_row,
					  &v };

	emit_columns(out, report_class, &rows, columns, 0);
	free(v.lines.items);
	emit_line(out, "%s", "");
}
