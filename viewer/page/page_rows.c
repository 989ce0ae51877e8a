/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks of a track as columns, and the tables that they refer to: origins (stack and line of
 * the allocation), contexts (thread, stream, stage) and evidence (why a block has its class).
 */
#include "../answers/used.h"
#include "../base/human.h"
#include "page.h"

enum { WIDTH = 6 };

struct page_rows {
	struct track *track;
	struct classifier *classifier;
	struct interned origins, contexts, evidence;
	struct bytes seq, time, addr, size, origin, context, end, end_stack, stretches, uses;
	struct block before;
	struct map users; /* kind of work -> its name */
	struct use_refusals refusals;
};

/* Row: stack, function, file, line, whether it is a backward node. */
static uint32_t origin_of(struct page_rows *r, const struct block *b)
{
	struct names *n = &r->track->page->names;
	struct owner o = owners_find(&r->track->timeline->owners, b);
	uint32_t row[WIDTH] = { track_stack(r->track, b->stack, b->seq) };

	row[1] = names_function(n, o.function);
	row[2] = names_path(n, o.file);
	row[3] = o.line;
	row[4] = o.backward;
	return interned_put(&r->origins, row);
}

/* Row: name of the thread, stream, stage, kind of memory, number of the thread. */
static uint32_t context_of(struct page_rows *r, const struct block *b)
{
	struct names *n = &r->track->page->names;
	const struct defs_thread *d = defs_thread(&r->track->recording->defs, b->thread);
	char stream[32];
	uint32_t row[WIDTH] = { names_text(n, d ? d->name.s : "", d ? d->name.len : 0) };

	snprintf(stream, sizeof(stream), b->stream ? "0x%llx" : "default",
		 (unsigned long long)b->stream);
	row[1] = names_word(n, stream);
	row[2] = model_born(&r->track->timeline->model, b)->stage;
	row[3] = b->memory;
	row[4] = d ? d->tid : 0;
	return interned_put(&r->contexts, row);
}

/* Row: a verdict's reason in parts that repeat: its facts, their time, and the place of the
 * allocation. The page joins them with the block's own time. A block that existed before the first
 * event gets the whole sentence. */
static uint32_t evidence_of(struct page_rows *r, const struct block *b, unsigned category)
{
	struct names *n = &r->track->page->names;
	struct verdict v = classify(r->classifier, b);
	uint32_t row[WIDTH] = { category, names_word(n, verdict_certainty(r->classifier, v)),
				names_word(n, verdict_rule(v)) };
	char text[REASON_WORDS];
	struct reason reason = verdict_reason(r->classifier, v, b);

	if (reason.has_birth && reason.when[0])
		row[4] = names_word(n, reason.when);
	row[3] = names_word(n, reason.has_birth ? reason.because
						: reason_words(&reason, text, sizeof(text)));
	snprintf(text, sizeof(text), "%s.", reason.place);
	row[5] = names_word(n, reason.has_birth ? text : "");
	return interned_put(&r->evidence, row);
}

/* Writes each class and reason of a block, except those that repeat the one before. */
static void put_stretches(struct page_rows *r, const struct page_life *life, struct block *b)
{
	const struct stretch *all = r->track->blocks.stretches, *s;
	uint64_t seq = b->seq;
	uint32_t before = UINT32_MAX, count = 0;
	struct bytes c = { 0 };

	for (uint32_t i = life->first; i; i = s->next) {
		uint32_t evidence;

		s = &all[i];
		b->state = s->state;
		evidence = evidence_of(r, b, s->category);
		if (evidence == before)
			continue;
		if (count++) {
			bytes_varint(&c, s->seq - seq);
			seq = s->seq;
		}
		bytes_varint(&c, evidence);
		before = evidence;
	}
	bytes_varint(&r->stretches, count - 1);
	bytes_add(&r->stretches, c.p, c.len);
	bytes_free(&c);
}

/* The name of a piece of work, kept by kind, because many have the same and demangling is slow. */
static uint32_t user_of(struct page_rows *r, uint32_t work)
{
	struct timeline *t = r->track->timeline;
	char by[256];

	return map_known(&r->users, uses_work(&t->model.uses, work)->kind,
			 names_word(&r->track->page->names, used_by(t, work, by, sizeof(by))));
}

/* Writes the number of uses (0: none known), the first and the last, flags (1: nothing uses the
 * block after the last; 2: some uses are not known), and the longest pause. */
static void put_uses(struct page_rows *r, uint32_t life, const struct block *b)
{
	const struct model *m = &r->track->timeline->model;
	struct block_uses x;

	uses_of(m, life, &x);
	bytes_varint(&r->uses, x.count);
	if (!x.count)
		return;
	column_row(&r->uses, x.first_seq - b->seq, zigzag(x.first_ns - b->born_ns),
		   user_of(r, x.works.first), x.last_seq - x.first_seq,
		   zigzag(x.last_ns - x.first_ns), user_of(r, x.works.last),
		   uses_end(m, r->track->timeline->device, life, &r->refusals) + 2u * !x.whole,
		   x.pause_ns);
	if (x.pause_ns)
		column_row(&r->uses, zigzag(x.pause_from_ns - x.first_ns),
			   user_of(r, x.works.pause), user_of(r, x.works.resume));
}

static void put_life(struct page_rows *r, const struct page_life *life)
{
	const struct model *m = &r->track->timeline->model;
	const struct block *before = &r->before;
	struct block b;

	model_block(m, life->life, &b);
	bytes_varint(&r->seq, b.seq - before->seq);
	bytes_varint(&r->time, zigzag(b.born_ns - before->born_ns));
	bytes_varint(&r->addr, zigzag(b.addr - before->addr));
	bytes_varint(&r->size, b.size);
	bytes_varint(&r->origin, origin_of(r, &b));
	bytes_varint(&r->context, context_of(r, &b));
	bytes_varint(&r->end, b.died_seq ? b.died_seq - b.seq : 0);
	if (b.died_seq) {
		bytes_varint(&r->end, zigzag(b.died_ns - b.born_ns));
		bytes_varint(&r->end_stack,
			     track_stack(r->track, lives_at(&m->lives, life->life)->died_stack,
					 b.died_seq));
	}
	put_stretches(r, life, &b);
	if (uses_known(m))
		put_uses(r, life->life, &b);
	r->before = b;
}

static void emit_rows(struct page_rows *r)
{
	struct page_lives *l = &r->track->blocks;
	struct emit *out = r->track->page->out;

	emit_object(out, "lives");
	emit_number(out, "count", l->count);
	emit_number(out, "left_out", l->left_out);
	column_emit(&r->seq, out, "seq");
	column_emit(&r->time, out, "time");
	column_emit(&r->addr, out, "addr");
	column_emit(&r->size, out, "size");
	column_emit(&r->origin, out, "origin");
	column_emit(&r->context, out, "context");
	column_emit(&r->end, out, "end");
	column_emit(&r->end_stack, out, "end_stack");
	column_emit(&r->stretches, out, "stretches");
	column_emit(&r->uses, out, "uses");
	emit_flag(out, "all_uses", uses_complete(l->model));
	interned_emit(&r->origins, out, "origins");
	interned_emit(&r->contexts, out, "contexts");
	interned_emit(&r->evidence, out, "evidence");
	emit_end(out);
}

void page_lives_emit(struct track *t)
{
	struct page_rows r = { .track = t,
			       .origins.width = WIDTH,
			       .contexts.width = WIDTH,
			       .evidence.width = WIDTH,
			       .classifier = timeline_classifier(t->timeline),
			       .before.born_ns = t->timeline->model.first_ns };

	for (size_t i = 0; i < t->blocks.count; chunks_rest(t->timeline->model.lives.pool), i++)
		put_life(&r, &t->blocks.items[i]);
	emit_rows(&r);
	interned_free(&r.origins);
	interned_free(&r.contexts);
	interned_free(&r.evidence);
	map_free(&r.users);
}
