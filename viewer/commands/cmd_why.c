/* SPDX-License-Identifier: Apache-2.0 */
/* why: what one block is for, and what says so. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../base/human.h"
#include "../base/say.h"
#include "../classes/classify.h"
#include "../documents/document.h"
#include "../moments/moments.h"
#include "command.h"

struct why_options {
	const char *file, *addr;
	struct moment_query at;
	long device;
	uint64_t address;
};

/* The block that holds the address: blocks are in order of address. */
static const struct block *block_at(const struct moment *mo, uint64_t addr)
{
	for (size_t i = 0; i < mo->count && mo->blocks[i].addr <= addr; i++)
		if (addr - mo->blocks[i].addr < mo->blocks[i].size)
			return &mo->blocks[i];
	return NULL;
}

static int no_block(const struct why_options *o, const struct model *m, const struct moment *mo)
{
	char when[MOMENTS_WHEN];

	return say_error(EXIT_USAGE,
			 "%s: no block holds address %s on device %d%s; `live` lists those "
			 "that are alive, and --at names another moment",
			 o->file, o->addr, mo->device,
			 moments_when(m, mo->seq, mo->time_ns, when, sizeof(when)));
}

static void text(struct emit *out, const struct row_why *w)
{
	char bytes[HUMAN_MAX], sure[24] = "";

	if (w->category != CATEGORY_unknown)
		snprintf(sure, sizeof(sure), "%s%s, ", *w->confidence == 'g' ? "a " : "",
			 w->confidence);
	emit_line(out, "%s at 0x%" PRIx64 ": %s (%srule %s)", human_bytes(bytes, w->size), w->addr,
		  category_words(w->category), sure, w->rule);
	emit_paragraph(out, "", "", w->evidence);
	if (w->owner.file[0])
		emit_line(out, "allocated by %s (%s:%u)%s%s", w->owner.function, w->owner.file,
			  w->owner.line, w->has_text ? ": " : "", w->text);
}

static void print(struct emit *out, struct classifier *c, struct owners *owners,
		  const struct moment *mo, const struct block *b)
{
	struct verdict v = classify(c, b);
	struct owner maker = owners_find(owners, b);
	const struct defs_source *s = defs_source(owners->stacks->defs, maker.file, maker.line);
	char reason[1024];
	struct row_why row = { .device = mo->device,
			       .time_ns = mo->time_ns,
			       .addr = b->addr,
			       .size = b->size,
			       .category = v.category,
			       .confidence = verdict_certainty(c, v),
			       .has_confidence_percent = verdict_percent(c, v) >= 0,
			       .confidence_percent = verdict_percent(c, v),
			       .rule = verdict_rule(v),
			       .evidence = reason,
			       .owner = maker,
			       .has_text = s && s->text.s[0],
			       .text = s ? s->text.s : "",
			       .stack = b->stack,
			       .born_ns = b->born_ns,
			       .died_ns = b->died_ns };

	verdict_reason(c, v, b, reason, sizeof(reason));
	emit_document(out, why, &row);
	text(out, &row);
}

static int explain(struct emit *out, struct recording *r, const struct model *m,
		   const struct moment *mo, const struct why_options *o)
{
	const struct block *b = block_at(mo, o->address);
	struct stacks stacks;
	struct owners owners;
	struct classifier *c;

	if (!b)
		return no_block(o, m, mo);
	owners_open(&owners, &stacks, &r->defs);
	c = classifier_new(m, &owners);
	print(out, c, &owners, mo, b);
	classifier_free(c);
	owners_close(&owners);
	return 0;
}

static int answer(const void *options, struct emit *out, struct recording *r)
{
	const struct why_options *o = options;
	struct moment_query at = o->at;
	struct model model;
	struct moment mo = { 0 };
	int rc = moments_one(r, &model, &mo, &at, o->device);

	if (rc)
		return rc;
	rc = explain(out, r, &model, &mo, o);
	model_free(&model);
	moment_free(&mo);
	return rc;
}

static int check(void *options)
{
	struct why_options *o = options;
	char *end;

	errno = 0;
	o->address = strtoull(o->addr, &end, 0);
	if (!errno && end != o->addr && !*end && o->addr[0] != '-')
		return 0;
	return say_error(EXIT_USAGE, "\"%s\" is not an address: give it as 0x7f12... or in decimal",
			 o->addr);
}

static const struct option_row options[] = {
	OPTION_AT(struct why_options, "peak (default), end, oom, TIME, mark:NAME#K"),
	OPTION_DEVICE(struct why_options),
	{ 0 },
};

static const struct operand_row operands[] = {
	{ "FILE", OPERAND_ONE, offsetof(struct why_options, file) },
	{ "ADDR", OPERAND_ONE, offsetof(struct why_options, addr) },
	{ 0 },
};

const struct command command_why = {
	.name = "why",
	.summary = "the class of a block, and the reason",
	.text = "Prints the class of the block that holds an address at a moment (any address "
		"inside "
		"it will do), how sure that is, and what it rests on. `live` lists the blocks.",
	.options = options,
	.operands = operands,
	.size = sizeof(struct why_options),
	.check = check,
	.answer = answer,
	.ranks = COMMAND_ONE,
	.file = offsetof(struct why_options, file),
};
