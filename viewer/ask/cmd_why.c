/* SPDX-License-Identifier: Apache-2.0 */
/* why: the class of one block, and the evidence for it. */
#include "../answers/used.h"
#include "../base/human.h"
#include "../classes/classify.h"
#include "command.h"

/* The block that contains the address, or NULL. Blocks are sorted by address. */
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

/* The last use of one block before the moment, and the next one after it. */
static struct use_around uses_of_block(const struct timeline *t, const struct moment *mo,
				       const struct block *b)
{
	struct moment one = { .device = mo->device, .seq = mo->seq, .count = 1 };
	struct use_around *found, x;

	one.blocks = (struct block *)b;
	found = uses_around(&t->model, &one);
	x = *found;
	free(found);
	return x;
}

/* Words for a block without a next use; "" if the recording might lack uses. */
static const char *not_again(const struct timeline *t, const struct block *b)
{
	if (!uses_complete(&t->model))
		return "";
	return b->died_seq ? "; not used again" : "; not used again in this recording";
}

static void print_uses(struct emit *out, const struct timeline *t, const struct moment *mo,
		       const struct block *b, const struct use_around *x)
{
	char before[USED_WORDS], after[USED_WORDS];
	struct block_uses all;

	uses_of(&t->model, b->life - 1, &all);
	if (!x->known)
		return;
	used_when(t, x->before, mo->time_ns, before, sizeof(before));
	used_when(t, x->after, mo->time_ns, after, sizeof(after));
	if (!all.count && uses_complete(&t->model))
		emit_line(out, "%s", "No kernel, copy or collective in this recording names it.");
	else if (x->before)
		emit_sentence(out, "  ", "Last used %s%s%s.", before,
			      x->after ? "; next " : not_again(t, b), x->after ? after : "");
	else if (x->after)
		emit_sentence(out, "  ", "First used %s.", after);
	if (all.pause_ns && all.count > 1)
		emit_sentence(out, "  ", "Used %s in all; the longest pause was %s.",
			      MANY(all.count, "time"), SECONDS(all.pause_ns));
}

static void fill_uses(struct row_why *row, const struct timeline *t, const struct block *b,
		      const struct use_around *x, char by[2][USED_WORDS])
{
	struct block_uses all;

	uses_of(&t->model, b->life - 1, &all);
	row->uses = used_count(&t->model, b->life - 1);
	row->first_use_ns = all.count ? all.first_ns : NO_NUMBER;
	row->last_use_ns = used_ns(&t->model, x->before);
	row->next_use_ns = used_ns(&t->model, x->after);
	row->last_use_by = x->before ? used_by(t, x->before, by[0], USED_WORDS) : "";
	row->next_use_by = x->after ? used_by(t, x->after, by[1], USED_WORDS) : "";
	row->longest_pause_ns = all.whole ? all.pause_ns : NO_NUMBER;
	row->longest_pause_from_ns = all.pause_ns ? all.pause_from_ns : NO_NUMBER;
}

static void print_class(struct emit *out, struct timeline *t, const struct moment *mo,
			const struct block *b)
{
	struct classifier *c = timeline_classifier(t);
	struct verdict v = classify(c, b);
	struct reason reason = verdict_reason(c, v, b);
	struct owner maker = owners_find(&t->owners, b);
	const struct defs_source *s = defs_source(t->stacks.defs, maker.file, maker.line);
	struct use_around around = uses_of_block(t, mo, b);
	char words[REASON_WORDS], by[2][USED_WORDS];
	struct row_why row = { .device = mo->device,
			       .time_ns = mo->time_ns,
			       .addr = b->addr,
			       .size = b->size,
			       .category = v.category,
			       .confidence = verdict_certainty(c, v),
			       MAYBE_THERE(confidence_percent, verdict_percent(c, v) >= 0,
					   verdict_percent(c, v)),
			       .rule = verdict_rule(v),
			       .evidence = reason_words(&reason, words, sizeof(words)),
			       .owner = maker,
			       MAYBE_THERE(text, s && s->text.s[0], s ? s->text.s : ""),
			       .stack = b->stack,
			       .born_ns = b->born_ns,
			       .died_ns = b->died_ns };

	fill_uses(&row, t, b, &around, by);
	emit_document(out, why, &row);
	if (emit_json(out))
		return;
	timeline_look(t, mo->device); /* the class's words need the steps */
	print_reason(out, &row, timeline_class_words(t, v.category, b, mo->seq));
	print_uses(out, t, mo, b, &around);
}

int run_why(const struct why_options *o, struct emit *out, struct timeline *t, struct moment *mo)
{
	const struct block *b = block_at(mo, o->address);

	if (!b)
		return no_block(o, t, mo);
	if (!t->steps.count)
		timeline_look(t, mo->device);
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
