/* SPDX-License-Identifier: Apache-2.0 */
#include "large_line.h"

#include <string.h>

#include "../base/arithmetic.h"
#include "../base/human.h"
#include "../classes/categories.h"
#include "../recording/owner_words.h"
#include "../recording/variables.h"
#include "holders.h"

#define PART	       3 /* least share: a third of the bytes with a stack or a class */
#define LEAST	       8 /* and an eighth of all bytes */
#define STATEMENT_MOST 80
#define MANY_RESULTS   8 /* from so many blocks on they are large only together */

enum when { ANYWAY, UNSAVED };

static const struct {
	const char *mark, *makers;
	enum when when;
	const char *change;
} operations[] = {
#define OPERATION(mark, makers, when, change) { mark, makers, when, change },
#include "operations.def"
};

/* Only views follow the call in its chain, such as x.repeat(2).view(-1). */
static bool ends_chain(const char *call)
{
	static const char *const views[] = { ".view(",	  ".reshape(",	 ".flatten(", ".t(",
					     ".detach(",  ".transpose(", ".permute(", ".unsqueeze(",
					     ".squeeze(", ".contiguous(" };
	const char *at = strchr(call, '(');
	int depth = 0;

	for (; at && *at; at++) {
		depth += (*at == '(') - (*at == ')');
		if (!depth && *at == ')' && at[1] != '.')
			return true;
		if (!depth && *at == '.' &&
		    !ANY_OF(v, views, sizeof(views) / sizeof(views[0]),
			    !strncmp(at, *v, strlen(*v))))
			return false;
	}
	return true;
}

/* True if the statement keeps the result of the marked operation: it is no argument of another
 * call, and no other operation follows in its chain. Indexing (a mark with ':') counts anywhere. */
static bool is_outside(const char *statement, const char *mark)
{
	const char *end = strstr(statement, mark);
	int depth = 0;

	for (const char *at = statement; end && at < end; at++)
		depth += (*at == '(') - (*at == ')');
	return end && (strchr(mark, ':') || (depth <= (*mark == ')') && ends_chain(end)));
}

/* The line calls a model whose results autograd does not keep. */
static const char call_in_parts[] = "call it for " SOME_ROWS;

/* The operator is one of them, or is not recorded. No makers: any operator. */
static bool is_made_by(const char *op, const char *makers)
{
	bool found = !op[0] || !makers[0];

	for (size_t n; *makers && !found; makers += n + (makers[n] == ' ')) {
		n = strcspn(makers, " ");
		found = !strncmp(op, makers, n);
	}
	return found;
}

/* "": known_only, and it is no operation of the table. */
static const char *change_of(struct timeline *t, const struct large_line *l, const char *statement)
{
	char op[32] = "";

	if (l->blocks >= MANY_RESULTS && !l->known_only)
		return l->unsaved
			       ? "many of its results are there at once: keep fewer of them"
			       : "many of its results are there at once: keep fewer of them or, "
				 "where autograd keeps them for backward, compute them again "
				 "(torch.utils.checkpoint), or, if no backward pass follows, call "
				 "the model under torch.no_grad()";
	if (l->stack)
		instant_operator(&t->stacks, l->stack, l->seq, op, sizeof(op));
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if ((!l->saved || operations[i].when == ANYWAY) &&
		    is_made_by(op, operations[i].makers) &&
		    is_outside(statement, operations[i].mark))
			return operations[i].change;
	if (!strcmp(op, "index_select"))
		return "one row is copied for each index: where they are summed up again (edges of "
		       "a graph), a product with a sparse matrix needs no copies, and where many "
		       "are of "
		       "one row (a weight by kind), one product for each row does; or compute some "
		       "at a "
		       "time, each part under torch.utils.checkpoint if autograd keeps it";
	if (l->known_only || l->mixes)
		return "";
	if (l->saved)
		return "autograd keeps it for backward: compute only the rows that are read, if "
		       "not "
		       "all are; or use an operator that needs less; or, if what follows makes "
		       "little "
		       "of each row, compute both for some rows at a time (samples, positions, "
		       "pairs, "
		       "edges), each part under torch.utils.checkpoint";
	return "compute only the rows that are read, if not all are; or this and what follows "
	       "for " SOME_ROWS "; or free what is not read any more";
}

/* Its frame was noted in an earlier call: then the stack made as large a block. */
static bool is_as_noted(const struct timeline *t, const struct large_line *l, uint64_t noted)
{
	const struct lives *lives = &t->model.lives;
	uint32_t n = l->size ? lives_born_by(lives, l->from) : 0;

	for (uint32_t i = noted ? lives_born_by(lives, noted - 1) : 0; i < n; i++) {
		const struct lived x = lives_read(lives, i);

		if (x.stack == l->stack)
			return x.size == l->size;
	}
	return true;
}

/* "scores a.py:3 (y = x.repeat(9), with x [8, 4096])" */
static void place_words(struct timeline *t, const struct large_line *l, const char *statement,
			char buf[LARGE_LINE_TEXT])
{
	char shapes[VARIABLE_WORDS] = "";
	uint64_t noted = 0;

	owner_words(&l->owner, buf, LARGE_LINE_TEXT, 0);
	if (!statement[0])
		return;
	if (l->stack)
		variables_read(&t->stacks, l->stack, l->seq, &l->owner, statement, shapes, &noted);
	if (!is_as_noted(t, l, noted))
		shapes[0] = 0;
	text_add(buf, LARGE_LINE_TEXT, " (%.*s%s%s%s)", STATEMENT_MOST, statement,
		 strlen(statement) > STATEMENT_MOST ? "..." : "", shapes[0] ? ", with " : "",
		 shapes);
}

/* Puts the line's place into words and returns the change. */
static const char *describe(struct timeline *t, const struct large_line *l,
			    char place[LARGE_LINE_TEXT])
{
	const struct defs_source *s =
		defs_source(&t->recording->defs, l->owner.file, l->owner.line);
	char statement[512] = "";

	if (s)
		snprintf(statement, sizeof(statement), "%.*s", (int)s->text.len, s->text.s);
	place_words(t, l, statement, place);
	if (l->call)
		return l->saved ? "" : call_in_parts;
	return change_of(t, l, statement);
}

void large_line_look(char text[LARGE_LINE_ALL], struct timeline *t, const struct large_line *l)
{
	char place[LARGE_LINE_TEXT];
	const char *change = l->owner.file[0] && l->owner.line ? describe(t, l, place) : "";

	text[0] = 0;
	if (change[0])
		text_put(text, LARGE_LINE_ALL, "Look at %s: %s.", place, change);
}

/* most: the line with most results. */
static void put_words(struct large_line *l, struct timeline *t, uint64_t all,
		      const struct holder *most)
{
	char place[LARGE_LINE_TEXT];

	text_put(l->change, sizeof(l->change), "%s", describe(t, l, place));
	text_put(l->text, sizeof(l->text), "%s of it (%s) are results of one %s, %s.", B(l->bytes),
		 PERCENT(l->bytes, all), l->call ? "call" : "line", place);
	if (l->call && !owners_same(&most->owner, &l->owner))
		text_add(l->text, sizeof(l->text), " The line with the most of it is %s (%s).",
			 owner_words(&most->owner, (char[OWNER_WORDS]){ 0 }, OWNER_WORDS, 0),
			 B(most->bytes));
}

/* True for results of a pass. In imports also for blocks of unknown class: a snapshot of PyTorch
 * often has only the line of a block. */
static bool is_result(const struct timeline *t, const struct block *b)
{
	return category_in(b->category, OF_ONE_PASS) ||
	       (b->category == CATEGORY_unknown && b->stack &&
		defs_meta(&t->recording->defs, "source").len);
}

/* Without tags, activations are those that autograd keeps, as far as is known. */
static bool is_saved(const struct block *b)
{
	return b->state & LIFE_SAVED || b->category == CATEGORY_activations;
}

void large_line_of(struct large_line *l, struct timeline *t, const struct snapshot *s,
		   const struct owner *owner)
{
	const struct block *largest = NULL;
	uint64_t saved = 0;

	*l = (struct large_line){ .owner = *owner };
	FOR_BLOCKS (b, &s->moment) {
		if (!is_result(t, b) || !owners_made(&t->owners, b, owner))
			continue;
		l->blocks++;
		l->bytes += b->size;
		saved += is_saved(b) ? b->size : 0;
		l->mixes |= stacks_in_function(&t->stacks, b->stack, ONE_OF("BatchNorm")) != NULL;
		largest = !largest || b->size > largest->size ? b : largest;
	}
	l->saved = 2 * saved > l->bytes;
	l->unsaved = !saved && t->model.spans.tags;
	l->stack = largest ? largest->stack : 0;
	l->seq = s->moment.seq;
	l->from = largest ? largest->seq : 0;
	l->size = largest ? largest->size : 0;
}

/* The line inside of the call that made most of its results. */
static struct holder most_inside(struct timeline *t, const struct snapshot *s,
				 const struct owner *call)
{
	struct holders lines = { .count = 0 };
	struct holder most;

	FOR_BLOCKS (b, &s->moment) {
		const struct owner caller = owners_caller(&t->owners, b->stack);

		if (is_result(t, b) && owners_same(&caller, call))
			holders_add(&lines, CATEGORIES, owners_find(&t->owners, b), b->size);
	}
	holders_sort(&lines);
	most = lines.items[0];
	free(lines.items);
	return most;
}

/* Sums up results by the line that made them, or by the line that called the model. */
static bool find_holder(struct large_line *l, struct timeline *t, const struct snapshot *s,
			bool call)
{
	struct holders lines = { .count = 0 };
	uint64_t all = 0, known = 0;
	struct holder inside;

	FOR_BLOCKS (b, &s->moment) {
		all += b->size;
		known += b->stack || b->category != CATEGORY_unknown ? b->size : 0;
		if (is_result(t, b))
			holders_add(&lines, CATEGORIES,
				    call ? owners_caller(&t->owners, b->stack)
					 : owners_find(&t->owners, b),
				    b->size)
				->grown += is_saved(b) ? b->size : 0;
	}
	holders_sort(&lines);
	*l = (struct large_line){ .bytes = 0 };
	if (lines.count && lines.items[0].owner.file[0] &&
	    lines.items[0].bytes >= arithmetic_most(known / PART, all / LEAST)) {
		const struct holder *most = lines.items;

		if (call)
			*l = (struct large_line){ .owner = most->owner,
						  .call = true,
						  .bytes = most->bytes,
						  .blocks = most->blocks,
						  .saved = 2 * most->grown > most->bytes };
		else
			large_line_of(l, t, s, &most->owner);
		inside = call ? most_inside(t, s, &l->owner) : *most;
		put_words(l, t, all, &inside);
	}
	free(lines.items);
	return l->bytes;
}

bool large_line_find(struct large_line *l, struct timeline *t, const struct snapshot *s)
{
	struct defs_text source = defs_meta(&t->recording->defs, "source");

	/* a trace of torch.profiler names functions by the lines where they begin */
	if (source.len > 8 && !memcmp(source.s, "trace of", 8))
		return false;
	return find_holder(l, t, s, false) || find_holder(l, t, s, true);
}

bool large_line_at_peak(struct large_line *l, struct timeline *t)
{
	const struct peak *peak = &model_curve(&t->model.devices[t->device])->peak;
	struct snapshot s;
	bool found;

	snapshot_take(&s, t, peak->event.seq);
	found = large_line_find(l, t, &s);
	moment_free(&s.moment);
	return found;
}
