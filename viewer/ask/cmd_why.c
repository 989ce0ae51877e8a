/* SPDX-License-Identifier: Apache-2.0 */
/* why: what one block is for, and what says so. */
#include "../classes/classify.h"
#include "command.h"

/* The block that holds the address: blocks are in order of address. */
static const struct block *block_at(const struct moment *mo, uint64_t addr)
{
	for (size_t i = 0; i < mo->count && mo->blocks[i].addr <= addr; i++)
		if (addr - mo->blocks[i].addr < mo->blocks[i].size)
			return &mo->blocks[i];
	return NULL;
}

static int no_block(const struct why_options *o, const struct timeline *t, const struct moment *mo)
{
	char when[MOMENTS_WHEN];

	return say_usage("%s: no block holds address %s on device %d%s; gpumemtrace live lists "
			 "those that are alive, and --at names another moment",
			 o->file, o->addr, mo->device,
			 moments_when(&t->model, mo->seq, mo->time_ns, when, sizeof(when)));
}

static void print_reason(struct emit *out, const struct row_why *w, const char *words)
{
	char sure[24] = "";

	if (w->category != CATEGORY_unknown)
		snprintf(sure, sizeof(sure), "%s%s, ", *w->confidence == 'g' ? "a " : "",
			 w->confidence);
	emit_line(out, "%s at 0x%" PRIx64 ": %s (%srule %s)", B(w->size), w->addr, words, sure,
		  w->rule);
	emit_paragraph(out, "", "", w->evidence);
	if (w->owner.file[0])
		emit_line(out, "allocated by %s (%s:%u)%s%s", w->owner.function, w->owner.file,
			  w->owner.line, w->has_text ? ": " : "", w->text);
}

static void print_class(struct emit *out, struct timeline *t, const struct moment *mo,
			const struct block *b)
{
	struct classifier *c = timeline_classifier(t);
	struct verdict v = classify(c, b);
	struct owner maker = owners_find(&t->owners, b);
	const struct defs_source *s = defs_source(t->stacks.defs, maker.file, maker.line);
	char reason[1024];
	struct row_why row = { .device = mo->device,
			       .time_ns = mo->time_ns,
			       .addr = b->addr,
			       .size = b->size,
			       .category = v.category,
			       .confidence = verdict_certainty(c, v),
			       MAYBE_THERE(confidence_percent, verdict_percent(c, v) >= 0,
					   verdict_percent(c, v)),
			       .rule = verdict_rule(v),
			       .evidence = reason,
			       .owner = maker,
			       MAYBE_THERE(text, s && s->text.s[0], s ? s->text.s : ""),
			       .stack = b->stack,
			       .born_ns = b->born_ns,
			       .died_ns = b->died_ns };

	verdict_reason(c, v, b, reason, sizeof(reason));
	emit_document(out, why, &row);
	if (emit_json(out))
		return;
	timeline_look(t, mo->device); /* the words tell steps apart */
	print_reason(out, &row, timeline_class_words(t, v.category, b, mo->seq));
}

int run_why(const struct why_options *o, struct emit *out, struct timeline *t, struct moment *mo)
{
	const struct block *b = block_at(mo, o->address);

	if (!b)
		return no_block(o, t, mo);
	print_class(out, t, mo, b);
	return 0;
}

int check_why(struct why_options *o)
{
	char *end;

	errno = 0;
	o->address = strtoull(o->addr, &end, 0);
	if (!errno && end != o->addr && !*end && o->addr[0] != '-')
		return 0;
	return say_usage("\"%s\" is not an address: give it as 0x7f12... or in decimal", o->addr);
}
