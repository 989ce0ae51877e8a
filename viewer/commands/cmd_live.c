/* SPDX-License-Identifier: Apache-2.0 */
/* live: every block that is alive at a moment. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../answers/chart.h"
#include "../answers/parts.h"
#include "../base/emit.h"
#include "../base/human.h"
#include "../base/say.h"
#include "../classes/classify.h"
#include "../moments/moments.h"
#include "../stacks/owners.h"
#include "command.h"

#define BEFORE 59 /* columns in front of the line of code, at most */

struct live_options {
	const char *file, *at;
	long device, top;
};

static int by_size(const void *a, const void *b)
{
	const struct block *x = a, *y = b;

	if (x->size != y->size)
		return x->size < y->size ? 1 : -1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Columns for the line of code that holds a block: what the screen has left. */
static size_t columns_left(void)
{
	unsigned columns, rows;

	chart_screen(&columns, &rows);
	return columns > BEFORE + 21 ? columns - BEFORE : 21;
}

static void owner_cell(struct emit *out, struct owners *owners, const struct block *b, size_t room)
{
	char text[OWNER_WORDS];
	struct owner o = owners_find(owners, b);

	owner_words_within(&o, text, sizeof(text), room);
	emit_cell_text(out, text, strlen(text));
}

static void rows(struct emit *out, struct classifier *c, const struct moment *mo, size_t most,
		 struct owners *owners)
{
	const char *rules = getenv("GPUMEMTRACE_TEST_RULES") ? "rules" : NULL; /* for score.py */
	const struct emit_column columns[] = {
		{ "addr", "address", EMIT_HEX },    { "size", "size", EMIT_SIZE },
		{ "category", "class", EMIT_TEXT }, { "stack", "stack", EMIT_COUNT },
		{ "born_ns", NULL, EMIT_TIME },	    { rules, "held by", EMIT_TEXT },
	};
	const size_t room = columns_left();
	char fitting[CLASSIFY_RULES] = "";

	emit_table(out, "blocks", columns, 6);
	for (size_t i = 0; i < mo->count && i < most; i++) {
		const struct block *b = &mo->blocks[i];
		const char *category = category_name(classify(c, b).category);

		emit_cell(out, b->addr);
		emit_cell(out, b->size);
		if (!emit_json(out))
			category = category_words(classify(c, b).category);
		emit_cell_text(out, category, strlen(category));
		emit_cell(out, b->stack);
		emit_cell(out, b->born_ns);
		if (rules)
			classify_all(c, b, fitting, sizeof(fitting));
		if (emit_json(out))
			emit_cell_text(out, fitting, strlen(fitting));
		else
			owner_cell(out, owners, b, room);
	}
	emit_table_end(out);
}

static void print(struct emit *out, const struct recording *r, const struct model *m,
		  struct moment *mo, const struct live_options *o)
{
	char bytes[HUMAN_MAX], when[MOMENTS_WHEN];
	size_t most = emit_json(out) || o->top <= 0 ? SIZE_MAX : (size_t)o->top;
	struct stacks stacks;
	struct owners owners;
	struct classifier *c;

	stacks_init(&stacks, &r->defs, symbols_new(&r->defs));
	owners_init(&owners, &stacks);
	c = classifier_new(m, &owners);
	emit_time_zero(out, m->first_ns);
	emit_object(out, NULL);
	if (emit_json(out)) {
		emit_signed(out, "device", mo->device);
		emit_number(out, "time_ns", mo->time_ns);
		emit_number(out, "bytes", mo->bytes);
	} else {
		if (mo->count)
			qsort(mo->blocks, mo->count, sizeof(*mo->blocks), by_size);
		emit_title(out, "%s in %zu block%s on device %d%s", human_bytes(bytes, mo->bytes),
			   mo->count, mo->count == 1 ? "" : "s", mo->device,
			   moments_when(m, mo->seq, mo->time_ns, when, sizeof(when)));
	}
	rows(out, c, mo, most, &owners);
	emit_end(out);
	if (most < mo->count)
		emit_left_out(out, "  ", mo->count - most);
	classifier_free(c);
	owners_free(&owners);
	symbols_free(stacks.symbols);
	stacks_free(&stacks);
}

static int answer(struct emit *out, struct recording *r, const struct live_options *o,
		  struct moment_query *q)
{
	struct model model;
	struct moment mo = { 0 };
	int rc = moments_one(r, &model, &mo, q, o->device);

	if (rc)
		return rc;
	print(out, r, &model, &mo, o);
	model_free(&model);
	moment_free(&mo);
	return 0;
}

static int run_live(const void *options, struct emit *out)
{
	const struct live_options *o = options;
	struct recording r;
	struct moment_query q;
	int rc = moments_parse(o->at ? o->at : "peak", &q);

	if (rc)
		return rc;
	rc = recording_open(&r, o->file);
	if (rc)
		return rc;
	rc = answer(out, &r, o, &q);
	recording_close(&r);
	return rc;
}

static void defaults(void *options)
{
	struct live_options *o = options;

	o->device = -1;
	o->top = 40;
}

static const struct option_row options[] = {
	{ "at", 0, OPTION_TEXT, offsetof(struct live_options, at), "MOMENT",
	  "peak (default), end, oom, TIME, mark:NAME#K" },
	{ "device", 0, OPTION_NUMBER, offsetof(struct live_options, device), "N",
	  "device; default: the one with the highest peak" },
	{ "top", 0, OPTION_NUMBER, offsetof(struct live_options, top), "N",
	  "rows of the table; default 40, 0 = all" },
	{ 0 },
};

static const struct operand_row operands[] = {
	{ "FILE", OPERAND_RUN, offsetof(struct live_options, file) },
	{ 0 },
};

const struct command command_live = {
	.name = "live",
	.summary = "the blocks that are alive at a moment",
	.text = "Prints what is alive at a moment, the largest first. A mark is the start of a "
		"range "
		"(torch.profiler.record_function, NVTX): mark:NAME is its first, mark:NAME#K its "
		"Kth. "
		"oom is the last time that memory ran out. Nanoseconds are those of dump; 1.5s "
		"counts "
		"from the first event.",
	.options = options,
	.operands = operands,
	.size = sizeof(struct live_options),
	.defaults = defaults,
	.run = run_live,
	.ranks = COMMAND_ROWS,
	.file = offsetof(struct live_options, file),
};
