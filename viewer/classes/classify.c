/* SPDX-License-Identifier: Apache-2.0 */
#include "classify.h"

#include "../base/human.h"
#include "../base/machine.h"
#include "rules.h"

/* The event whose time the reason gives. */
enum when { WHEN_NONE, WHEN_LEAF, WHEN_GRAD, WHEN_SAVED, WHEN_DIED, WHEN_HELD };

struct rule {
	const char *name;
	enum category category;
	enum when when;
	rule_fits *fits;
	const char *because;
};

/* The first row that fits decides. */
static const struct rule rules[] = {
#define RULE(name, category, when, fits, because) \
	{ name, CATEGORY_##category, when, fits, because },
#include "rules.def"
};

#define RULES (sizeof(rules) / sizeof(rules[0]))

struct classifier *classifier_new(const struct model *m, struct owners *owners)
{
	struct classifier *c = need_new(sizeof(*c));

	c->m = m;
	c->study = m->watcher;
	c->owners = owners;
	c->without = machine_setting("GPUMEMTRACE_TEST_WITHOUT_RULE");
	return c;
}

void classifier_free(struct classifier *c)
{
	map_free(&c->places);
	free(c);
}

/* The last rule. */
bool fits_always(UNUSED struct classifier *c, UNUSED const struct history *h)
{
	return true;
}

/* True if a test leaves out the rule. The names in `without` are separated by commas. */
static bool is_left_out(const struct classifier *c, const char *rule)
{
	size_t n = strlen(rule);

	for (const char *at = c->without; at && (at = strstr(at, rule)); at += n)
		if ((at == c->without || at[-1] == ',') && (!at[n] || at[n] == ','))
			return true;
	return false;
}

static struct verdict decide(struct classifier *c, const struct history *h)
{
	size_t i = 0;

	while (i < RULES - 1 &&
	       ((c->without && is_left_out(c, rules[i].name)) || !rules[i].fits(c, h)))
		i++;
	return (struct verdict){ rules[i].category, &rules[i] };
}

struct verdict classify(struct classifier *c, const struct block *b)
{
	struct history h;

	study_history(c->study, b, &h);
	return decide(c, &h);
}

/* The block counts as freed at once, so that no rule waits for later events. */
struct verdict classify_request(struct classifier *c, const struct block *b, enum block_stage stage,
				uint64_t step)
{
	struct history h = { .block = *b, .stage = stage, .died_stage = stage, .step = step };

	h.signs = h.died_signs = model_signs(c->m, b->stack);
	h.in_node = stage_is_backward(stage);
	h.block.died_seq = b->seq + 1;
	h.block.died_ns = b->born_ns;
	h.born_forward = h.died_forward = c->m->spans.forwards;
	h.born_backward = h.died_backward = c->m->spans.backwards;
	return decide(c, &h);
}

void classify_all(struct classifier *c, const struct block *b, char *buf, size_t room)
{
	struct history h;

	buf[0] = 0;
	study_history(c->study, b, &h);
	for (size_t i = 0; i < RULES; i++)
		if (rules[i].fits(c, &h))
			text_add(buf, room, "%s%s:%s", buf[0] ? " " : "", rules[i].name,
				 categories[rules[i].category].name);
}

const struct category_words categories[CATEGORIES] = {
#define CATEGORY(name, words, colour, letter, term, level, part, traits) \
	{ #name, words, term, colour, level },
#include "categories.def"
};

const char *category_kept_words(unsigned category)
{
	unsigned results = CLASSES_THAT(ARE_TEMPORARY) & CLASSES_THAT(ARE_OF_FORWARD);

	return category_in(category, results) ? "kept results" : categories[category].words;
}

int category_by_name(const char *name)
{
	for (unsigned i = 0; i < CATEGORIES; i++)
		if (!strcmp(name, categories[i].name))
			return (int)i;
	return -1;
}

const char *verdict_rule(struct verdict v)
{
	return v.rule->name;
}

bool verdict_is_held(struct verdict v)
{
	return v.rule->when == WHEN_HELD;
}

bool verdict_is_leaf(struct verdict v)
{
	return v.rule->fits == tag_parameter || v.rule->fits == frame_leaf;
}

/* " (first at 1.20 s)" */
static void time_of(const struct classifier *c, const struct rule *r, const struct history *h,
		    char *buf, size_t room)
{
	uint64_t ns = 0;

	if (r->when == WHEN_LEAF)
		ns = h->facts.leaf_ns;
	else if (r->when == WHEN_GRAD)
		ns = h->facts.grad_ns;
	else if (r->when == WHEN_SAVED)
		ns = h->facts.save_ns;
	else if (r->when == WHEN_DIED)
		ns = h->block.died_ns;
	buf[0] = 0;
	if (ns)
		snprintf(buf, room, " (%s %s)", r->when == WHEN_DIED ? "at" : "first at",
			 SECONDS(ns - c->m->first_ns));
}

static const char *const stage_words[STAGES] = {
	[STAGE_OUTSIDE] = "outside of forward and backward",
	[STAGE_FORWARD] = "in a forward pass",
	[STAGE_BACKWARD] = "in backward",
	[STAGE_RECOMPUTE] = "recomputed in backward",
	[STAGE_ZERO_GRAD] = "while gradients were cleared",
	[STAGE_OPTIMIZER] = "in the optimizer's step",
};

/* ", at Net.forward model.py:12" */
static void place_words(struct classifier *c, const struct history *h, char *buf, size_t room)
{
	struct owner o = { .function = "", .file = "" };

	buf[0] = 0;
	if (c->owners)
		o = owners_find(c->owners, &h->block);
	if (o.backward)
		snprintf(buf, room, ", for the node %s", o.function);
	else if (o.function[0] && o.file[0])
		snprintf(buf, room, ", at %s %s:%u", o.function, owners_base(o.file), o.line);
	else if (o.function[0])
		snprintf(buf, room, ", at %s", o.function);
}

struct reason verdict_reason(struct classifier *c, struct verdict v, const struct block *b)
{
	struct reason r = { .because = v.rule->because };
	const char *before = ", made ";
	char place[512];
	struct history h;

	study_history(c->study, b, &h);
	time_of(c, v.rule, &h, r.when, sizeof(r.when));
	if (h.block.seq > c->m->state_seq) {
		r.has_birth = true;
		r.born_ns = h.block.born_ns - c->m->first_ns;
		before = " ";
	}
	place_words(c, &h, place, sizeof(place));
	if (r.has_birth || h.block.stack)
		snprintf(r.place, sizeof(r.place), "%s%s%s", before, stage_words[h.stage], place);
	return r;
}

const char *reason_words(const struct reason *r, char *buf, size_t room)
{
	if (r->has_birth)
		snprintf(buf, room, "%s%s. It was allocated at %s%s.", r->because, r->when,
			 SECONDS(r->born_ns), r->place);
	else
		snprintf(buf, room, "%s%s. It was there from the start%s.", r->because, r->when,
			 r->place);
	return buf;
}
