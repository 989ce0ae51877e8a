/* SPDX-License-Identifier: Apache-2.0 */
/* peak: the highest moment in a few lines: when, what, and the lines of code that hold it. */
#include "../answers/parts.h"
#include "../answers/peak.h"
#include "command.h"

#define WHO 37

/* "26.4 GiB activations, 11.5 GiB optimizer state", the largest first, in lines of 78. */
static void text_classes(struct emit *out, const struct peak_answer *a, uint64_t bytes)
{
	char line[80] = "", one[64];
	unsigned order[CATEGORIES];
	size_t count = classes_by_bytes(a->shot.bytes, order);

	for (size_t i = 0; i < count; i++) {
		snprintf(one, sizeof(one), "%s %s", B(a->shot.bytes[order[i]]),
			 categories[order[i]].words);
		if (line[0] && strlen(line) + strlen(one) > 74) {
			emit_line(out, "  %s,", line);
			line[0] = 0;
		}
		text_add(line, sizeof(line), "%s%s", line[0] ? ", " : "", one);
	}
	if (line[0])
		emit_line(out, "  %s", line);
	if (bytes > a->shot.moment.bytes)
		emit_line(out, "  %s in blocks that the recording does not have",
			  B(bytes - a->shot.moment.bytes));
}

static void print_peak_lines(struct emit *out, const struct peak_answer *a,
			     const struct row_peak *row, long top)
{
	const struct moment *mo = &a->shot.moment;
	const struct text_column columns[] = {
		TEXT_COLUMN("", class_line_bytes, 2, 10),
		TEXT_COLUMN("", class_line_bytes, 1, 5, .style = COLUMN_SHARE, .all = mo->bytes),
		TEXT_COLUMN("", class_line_class, 2, -21),
		TEXT_COLUMN("", class_line_owner, 2, -1, .room = WHO),
	};

	emit_peak_title(out,
			&(struct peak_words){ &a->timeline->model, mo->device, row->bytes,
					      mo->total_bytes, mo->seq, mo->time_ns, &a->instant });
	text_classes(out, a, row->bytes);
	emit_line(out, "%s", "");
	emit_top(out, class_line, &row->lines, columns, top, "  ");
}

int run_peak(const struct peak_options *o, struct emit *out, struct timeline *t)
{
	struct peak_answer a;
	struct row_peak row;

	peak_find(&a, t);
	row = peak_document(&a);
	emit_document(out, peak, &row);
	print_peak_lines(out, &a, &row, o->top);
	peak_free(&a);
	return 0;
}
