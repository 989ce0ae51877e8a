/* SPDX-License-Identifier: Apache-2.0 */
/* peak: the highest moment in a few lines: when, what, and the lines of code that hold it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../answers/holders.h"
#include "../answers/parts.h"
#include "../base/human.h"
#include "../base/need.h"
#include "../documents/columns.h"
#include "../moments/moments.h"
#include "../moments/snapshot.h"
#include "command.h"

#define WHO 37

struct peak_options {
	const char *file;
	long device, top;
};

/* One line of one class, the largest of them all first. */
struct line {
	enum category category;
	const struct holder *holder;
};

struct view {
	struct timeline timeline;
	struct snapshot shot;
	struct instant instant;
	struct holders holders[CATEGORIES];
	struct line *lines;
	size_t count;
};

static int by_bytes(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	if (x->holder->bytes != y->holder->bytes)
		return x->holder->bytes < y->holder->bytes ? 1 : -1;
	return x->category < y->category ? -1 : x->category > y->category;
}

static void find_lines(struct view *v)
{
	const struct moment *mo = &v->shot.moment;
	size_t n = 0;

	for (size_t i = 0; i < mo->count; i++)
		holders_add(&v->holders[v->shot.classes[i]],
			    (struct holder){
				    .owner = owners_find(&v->timeline.owners, &mo->blocks[i]) },
			    mo->blocks[i].size);
	for (unsigned c = 0; c < CATEGORIES; c++)
		v->count += v->holders[c].count;
	v->lines = need_new((v->count + 1) * sizeof(*v->lines));
	for (unsigned c = 0; c < CATEGORIES; c++)
		for (size_t i = 0; i < v->holders[c].count; i++)
			v->lines[n++] = (struct line){ c, &v->holders[c].items[i] };
	qsort(v->lines, v->count, sizeof(*v->lines), by_bytes);
}

static bool line_row(void *ctx, size_t i, struct row_class_line *row)
{
	const struct view *v = ctx;
	const struct holder *h = v->lines[i].holder;

	*row = (struct row_class_line){ .class = v->lines[i].category,
					.owner = h->owner,
					.bytes = h->bytes,
					.blocks = h->blocks };
	return true;
}

static struct row_peak document(struct view *v)
{
	const struct moment *mo = &v->shot.moment;

	return (struct row_peak){ .device = mo->device,
				  .bytes = mo->bytes,
				  .time_ns = mo->time_ns,
				  .seq = mo->seq,
				  .step = v->instant.step,
				  .phase = phase_name(v->instant.phase),
				  .text = v->instant.text,
				  .reserved_bytes = mo->reserved,
				  .total_bytes = mo->total_bytes,
				  .categories = v->shot.bytes,
				  .lines = { v->count, line_row, v } };
}

/* "26.4 GiB activations, 11.5 GiB optimizer state", the largest first, in lines of 78. */
static void text_classes(struct emit *out, const struct view *v)
{
	char line[80] = "", one[64], b[HUMAN_MAX];
	unsigned order[CATEGORIES];
	size_t count = classes_by_bytes(v->shot.bytes, order);

	for (size_t i = 0; i < count; i++) {
		snprintf(one, sizeof(one), "%s %s", human_bytes(b, v->shot.bytes[order[i]]),
			 category_words(order[i]));
		if (line[0] && strlen(line) + strlen(one) > 74) {
			emit_line(out, "  %s,", line);
			line[0] = 0;
		}
		snprintf(line + strlen(line), sizeof(line) - strlen(line), "%s%s",
			 line[0] ? ", " : "", one);
	}
	if (line[0])
		emit_line(out, "  %s", line);
}

static void text(struct emit *out, const struct view *v, const struct row_peak *row, long top)
{
	const struct moment *mo = &v->shot.moment;
	const struct text_column columns[] = {
		TEXT_COLUMN("", class_line_bytes, 2, 10),
		TEXT_COLUMN("", class_line_bytes, 1, 5, .style = COLUMN_SHARE, .all = mo->bytes),
		TEXT_COLUMN("", class_line_class, 2, -21),
		TEXT_COLUMN("", class_line_owner, 2, -1, .room = WHO),
	};

	emit_peak_title(out, &(struct peak_words){ &v->timeline.model, mo->device, mo->bytes,
						   mo->total_bytes, mo->seq, mo->time_ns,
						   v->instant.text });
	text_classes(out, v);
	emit_line(out, "%s", "");
	emit_top(out, class_line, &row->lines, columns, top, "  ");
}

static int answer(const void *options, struct emit *out, struct recording *r)
{
	const struct peak_options *o = options;
	struct view v = { 0 };
	const struct peak *peak;
	struct row_peak row;
	size_t step;
	int rc = timeline_open(&v.timeline, r, o->device);

	if (rc)
		return rc;
	peak = &model_curve(&v.timeline.model.devices[v.timeline.device])->peak;
	snapshot_take(&v.shot, &v.timeline, peak->event.seq);
	if (!rc) {
		instant_of_peak(&v.instant, &v.timeline.steps, &v.timeline.model.spans,
				timeline_peak(&v.timeline, &step), &v.timeline.owners);
		find_lines(&v);
		row = document(&v);
		emit_document(out, peak, &row);
		text(out, &v, &row, o->top);
		for (unsigned c = 0; c < CATEGORIES; c++)
			free(v.holders[c].items);
		free(v.lines);
		snapshot_free(&v.shot);
	}
	timeline_close(&v.timeline);
	return rc;
}

static const struct option_row options[] = {
	OPTION_DEVICE(struct peak_options),
	OPTION_TOP(struct peak_options, "lines of code to name", 8),
	{ 0 },
};

const struct command command_peak = {
	.name = "peak",
	.summary = "the peak, and the lines that hold it",
	.text = "Prints when the peak was, in which step and phase, its classes, and the lines of "
		"code that held most of it, each with its class.",
	.options = options,
	.answer = answer,
	COMMAND_FILE(struct peak_options, OPERAND_RUN, COMMAND_ROWS),
};
