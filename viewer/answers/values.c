/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The purpose of a read value follows from the calls between the program's line and the copy. An
 * operation that reads a value itself depends on it: nonzero() needs its count, a mask the length
 * of its result. A copy that the program requested, by item() or cpu(), is only a read, unless it
 * is a flag, a count or a whole number of 8 bytes, or the statement shows its purpose. A program
 * that only repeats itself waits for the value.
 */
#include "values.h"

#include "../base/ending.h"
#include "../base/human.h"
#include "../recording/owner_words.h"

#define COUNTS 4

/* The device's assumption about a value, by the state that it reports: simgpu/core/core.h. */
static const struct {
	unsigned state;
	const char *text;
} assumptions[] = {
	{ 2, "masks are all true" },
	{ 3, "topk, argmax and sort choose evenly (tokens over experts)" },
	{ COUNTS, "counts stay as they were before a kernel that is not computed" },
};

#define ASSUMPTIONS (sizeof(assumptions) / sizeof(assumptions[0]))

static uint64_t reads_of(const struct read_place *r)
{
	return SUM_OF(x, r->states, READ_STATES, *x);
}

/* Assumptions about the values as bits (1 << state); *bare: reads without any assumption. */
static unsigned assumed_of(const struct read_place *r, uint64_t *bare)
{
	unsigned assumed = 0;

	*bare = reads_of(r);
	for (size_t i = 0; i < ASSUMPTIONS; i++) {
		*bare -= r->states[assumptions[i].state];
		assumed |= r->states[assumptions[i].state] ? 1u << assumptions[i].state : 0;
	}
	return assumed;
}

/* ---- purpose ---- */

/* Operations of PyTorch that copy a value because the program requested it. */
static bool only_reads(const char *operation)
{
	return !operation[0] || !strncmp(operation, "to_", 3) ||
	       words_equal(operation, strlen(operation),
			   ONE_OF("item", "_local_scalar_dense", "copy_", "to", "_to_copy",
				  "_copy_from", "clone", "contiguous", "resolve_conj"));
}

/* "at::_ops::nonzero::call(...)" becomes "nonzero"; the overload's name is dropped. */
static void operation_of(const char *function, char *out, size_t room)
{
	static const char start[] = "at::_ops::";
	const char *at = strstr(function, start), *end;

	if (!at)
		return;
	at += strlen(start);
	end = strstr(at, "::");
	if (end)
		snprintf(out, room, "%.*s", (int)(end - at), at);
}

/* True if the text has the word at the beginning of a name. "print(" does not have "int(". */
static bool holds_word(const char *text, const char *word)
{
	for (const char *at = text; (at = strstr(at, word)); at++)
		if (at == text || !word_has(at[-1]))
			return true;
	return false;
}

static bool says_decision(const char *text)
{
	static const char *const words[] = { "if ",    "elif ", "while ", "assert ",
					     "range(", "int(",	"bool(",  "split(" };

	return ANY_OF(x, words, sizeof(words) / sizeof(words[0]), holds_word(text, *x));
}

/* Finds the operation that Python called, and whether Python converts to a whole number or a truth
 * value. */
static void look_at_calls(struct value_place *p, struct owners *owners)
{
	const struct stacks *s = owners->stacks;
	const struct read_place *r = p->read;
	const struct defs_source *source = NULL;

	stacks_read(owners->stacks, r->stack, r->seq);
	for (size_t i = 0; i < s->count && !s->frames[i].python; i++) {
		const char *f = s->frames[i].function;

		operation_of(f, p->operation, sizeof(p->operation));
		p->decides = p->decides || strstr(f, "integral_scalar") ||
			     strstr(f, "bool_scalar") || strstr(f, "index_scalar") ||
			     strstr(f, "is_nonzero");
	}
	p->owner = owners_find(owners, &(struct block){ .stack = r->stack, .seq = r->seq });
	if (p->owner.file && p->owner.line)
		source = defs_source(s->defs, p->owner.file, p->owner.line);
	p->decides = p->decides || !only_reads(p->operation) || r->size == 1 ||
		     (r->size == 8 && words_equal(p->operation, strlen(p->operation),
						  ONE_OF("item", "_local_scalar_dense"))) ||
		     r->states[COUNTS] || r->states[READ_REPEATS] ||
		     (source && says_decision(source->text.s));
	p->sizes = p->decides && r->size != 1 && strcmp(p->operation, "equal") != 0;
}

static void add_line(struct values *v, const struct value_place *p)
{
	uint64_t reads = reads_of(p->read), bare;
	unsigned assumed = assumed_of(p->read, &bare);

	v->reads += reads;
	if (p->read->states[READ_REPEATS] > (v->again ? v->again->read->states[READ_REPEATS] : 0))
		v->again = p;
	if (!p->decides)
		return;
	v->decisions += reads;
	v->sizes += p->sizes ? reads : 0;
	v->bare += p->sizes ? bare : 0;
	v->assumed |= assumed;
	if (!v->first || (p->sizes && !v->first->sizes))
		v->first = p;
}

void values_find(struct values *v, const struct reads *reads, struct owners *owners)
{
	*v = (struct values){ .count = reads->count };
	v->places = need_new((v->count + 1) * sizeof(*v->places));
	for (size_t i = 0; i < v->count; i++) {
		v->places[i].read = &reads->items[i];
		look_at_calls(&v->places[i], owners);
		add_line(v, &v->places[i]);
	}
}

void values_free(struct values *v)
{
	free(v->places);
}

/* ---- text ---- */

#define ASSUMED_WORDS 200

/* "; assumed: masks are all true"; "" if nothing was. */
static const char *assumed_words(const struct values *v, char text[ASSUMED_WORDS])
{
	text[0] = 0;
	for (size_t i = 0; i < ASSUMPTIONS; i++)
		if (v->assumed & 1u << assumptions[i].state)
			text_add(text, ASSUMED_WORDS, "%s%s",
				 text[0] ? ", " : "; assumed: ", assumptions[i].text);
	return text;
}

/* "train.py:12 nonzero" */
static void place_words(const struct value_place *p, char place[OWNER_WORDS])
{
	place[0] = 0;
	if (p->owner.file && p->owner.file[0])
		owner_place(&p->owner, place, OWNER_WORDS, OWNER_WORDS);
	text_add(place, OWNER_WORDS, "%s%s", place[0] && p->operation[0] ? " " : "", p->operation);
}

const char *values_waiting(const struct values *v, char text[VALUES_SENTENCE])
{
	char place[OWNER_WORDS], reads[HUMAN_MANY];

	text[0] = 0;
	if (!v->again)
		return text;
	place_words(v->again, place);
	snprintf(text, VALUES_SENTENCE,
		 "it repeats the same work and reads values that are not computed (%s%s%s). If it "
		 "waits for one of them to change, it never ends",
		 place, place[0] ? ", " : "", human_many(reads, reads_of(v->again->read), "time"));
	return text;
}

const char *values_sentence(const struct values *v, char text[VALUES_SENTENCE])
{
	char place[OWNER_WORDS], assumed[ASSUMED_WORDS];
	const char *many = v->decisions == 1 ? "" : "s";

	text[0] = 0;
	if (!v->decisions)
		return text;
	place_words(v->first, place);
	snprintf(text, VALUES_SENTENCE,
		 "%" PRIu64 " size%s or decision%s rested on values that are not computed%s%s%s",
		 v->decisions, many, many, place[0] ? "; first: " : "", place,
		 assumed_words(v, assumed));
	return text;
}

const char *values_effect(const struct values *v)
{
	return v->bare	  ? "sizes that depend on them may be too small, and so may the peak"
	       : v->sizes ? "sizes that depend on them may differ on a card, and so may the peak"
			  : "all of them were decisions, yes or no: on a card the program may take "
			    "another path";
}

void values_text(const struct values *v, struct emit *out)
{
	const char *effect = values_effect(v);
	char text[VALUES_SENTENCE];

	if (!v->decisions)
		return;
	emit_title(out, "Values that are not computed");
	emit_sentence(out, "  ", "  %s. %c%s.", values_sentence(v, text), toupper(effect[0]),
		      effect + 1);
	if (*values_waiting(v, text))
		emit_sentence(out, "  ", "  The program makes no progress: %s.", text);
}

static bool place_row(void *ctx, size_t i, struct row_value_place *row)
{
	const struct values *v = ctx;
	const struct value_place *p = &v->places[i];

	*row = (struct row_value_place){ .owner = p->owner,
					 .operation = p->operation,
					 .decides = p->decides,
					 .reads = reads_of(p->read),
					 .stack = p->read->stack };
	return true;
}

static const char *assumption(const void *ctx, size_t i)
{
	const struct values *v = ctx;

	return v->assumed & 1u << assumptions[i].state ? assumptions[i].text : NULL;
}

bool values_document(const struct values *v, struct row_values *row)
{
	*row = (struct row_values){ .reads = v->reads,
				    .decisions = v->decisions,
				    .sizes = v->sizes,
				    .assumed = { ASSUMPTIONS, assumption, v },
				    .places = { v->count, place_row, (void *)v } };
	return v->reads;
}
