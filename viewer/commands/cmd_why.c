/* SPDX-License-Identifier: Apache-2.0 */
/* why: what one block is for, and what says so. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../answers/parts.h"
#include "../base/human.h"
#include "../base/say.h"
#include "../classes/classify.h"
#include "../documents/document.h"
#include "../moments/moments.h"
#include "command.h"

struct why_options {
	const char *file, *addr, *at;
	long device;
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
		   const struct moment *mo, const struct why_options *o, uint64_t addr)
{
	const struct block *b = block_at(mo, addr);
	struct stacks stacks;
	struct owners owners;
	struct classifier *c;

	if (!b)
		return no_block(o, m, mo);
	stacks_init(&stacks, &r->defs, symbols_new(&r->defs));
	owners_init(&owners, &stacks);
	c = classifier_new(m, &owners);
	print(out, c, &owners, mo, b);
	classifier_free(c);
	owners_free(&owners);
	symbols_free(stacks.symbols);
	stacks_free(&stacks);
	return 0;
}

static int answer(struct emit *out, struct recording *r, const struct why_options *o,
		  struct moment_query *q, uint64_t addr)
{
	struct model model;
	struct moment mo = { 0 };
	int rc = moments_one(r, &model, &mo, q, o->device);

	if (rc)
		return rc;
	rc = explain(out, r, &model, &mo, o, addr);
	model_free(&model);
	moment_free(&mo);
	return rc;
}

static int parse_address(const struct why_options *o, uint64_t *addr)
{
	char *end;

	errno = 0;
	*addr = strtoull(o->addr, &end, 0);
	if (!errno && end != o->addr && !*end && o->addr[0] != '-')
		return 0;
	return say_error(EXIT_USAGE, "\"%s\" is not an address: give it as 0x7f12... or in decimal",
			 o->addr);
}

static int run_why(const void *options, struct emit *out)
{
	const struct why_options *o = options;
	struct recording r;
	struct moment_query q;
	uint64_t addr;
	int rc = moments_parse(o->at ? o->at : "peak", &q);

	if (!rc)
		rc = parse_address(o, &addr);
	if (!rc)
		rc = recording_open(&r, o->file);
	if (rc)
		return rc;
	rc = answer(out, &r, o, &q, addr);
	recording_close(&r);
	return rc;
}

static void defaults(void *options)
{
	((struct why_options *)options)->device = -1;
}

static const struct option_row options[] = {
	{ "at", 0, OPTION_TEXT, offsetof(struct why_options, at), "MOMENT",
	  "peak (default), end, oom, TIME, mark:NAME#K" },
	{ "device", 0, OPTION_NUMBER, offsetof(struct why_options, device), "N",
	  "device; default: the one with the highest peak" },
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
	.defaults = defaults,
	.run = run_why,
	.ranks = COMMAND_ONE,
	.file = offsetof(struct why_options, file),
};
