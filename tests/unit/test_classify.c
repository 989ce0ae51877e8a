/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every rule of the classifier: a short life of a block that the rule, and no other, decides. Each
 * is judged twice: with all rules, and with that rule left out, where the answer must be another.
 *
 * links: tests/unit/recordings.c tests/unit/scenes*.c
 */
#include "scenes.h"

#include <stdio.h>

#include "../../viewer/classes/rules.h"

static struct verdict judge(const char *without, const struct block **block)
{
	struct stacks stacks;
	struct owners owners;
	struct classifier *c;
	struct verdict v = { 0 };
	struct reason reason;
	char words[REASON_WORDS];

	owners_open(&owners, &stacks, &defs);
	if (without)
		setenv("GPUMEMTRACE_TEST_WITHOUT_RULE", without, 1);
	else
		unsetenv("GPUMEMTRACE_TEST_WITHOUT_RULE");
	c = classifier_new(&m, &owners);
	*block = NULL;
	for (size_t i = 0; i < moment.count; i++)
		if (moment.blocks[i].addr == 0x1000) {
			*block = &moment.blocks[i];
			v = classify(c, *block);
			reason = verdict_reason(c, v, *block);
			reason_words(&reason, words, sizeof(words));
			assert_non_null(strstr(words, reason.has_birth ? "It was allocated at "
								       : "It was there from "
									 "the start"));
		}
	classifier_free(c);
	owners_close(&owners);
	assert_non_null(*block);
	return v;
}

/* The scene after s, of all tables; NULL before the first and after the last. */
static const struct scene *next_scene(const struct scene *s)
{
	static const struct scenes *const tables[] = { &scenes_of_rules, &scenes_of_graphs,
						       &scenes_of_sets,	 &scenes_of_data,
						       &scenes_of_late,	 &scenes_of_uses };
	enum { TABLES = sizeof(tables) / sizeof(tables[0]) };

	if (!s)
		return tables[0]->items;
	for (int i = 0; i < TABLES; i++)
		if (s == tables[i]->items + tables[i]->count - 1)
			return i + 1 < TABLES ? tables[i + 1]->items : NULL;
	return s + 1;
}

enum { WHEN_NONE, WHEN_LEAF, WHEN_GRAD, WHEN_SAVED, WHEN_DIED, WHEN_HELD };
static const struct {
	const char *name;
	enum category category;
	unsigned when;
	rule_fits *fits;
	const char *because;
} rules[] = {
#define RULE(name, category, when, fits, because) \
	{ name, CATEGORY_##category, when, fits, because },
#include "../../viewer/classes/rules.def"
};

/* A rule that has another name now would be a guess for ever. */
static void what_was_measured_is_a_rule(void **state_)
{
	static const struct {
		const char *rule;
		struct {
			uint64_t right, wrong;
			unsigned programs;
		} on, off;
	} measured[] = {
#include "../../viewer/classes/precision.def"
	};

	(void)state_;
	for (size_t i = 0; i < sizeof(measured) / sizeof(measured[0]); i++) {
		bool found = false;

		for (size_t k = 0; k < sizeof(rules) / sizeof(rules[0]); k++)
			found |= !strcmp(measured[i].rule, rules[k].name);
		if (!found)
			fail_msg("no rule %s", measured[i].rule);
	}
}

/* A rule without a scene would be judged by nobody. */
static void every_rule_has_a_scene(void **state_)
{
	(void)state_;
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		bool found = false;

		for (const struct scene *s = next_scene(NULL); s; s = next_scene(s))
			found |= !strcmp(s->rule, rules[i].name) &&
				 !strcmp(s->category, categories[rules[i].category].name);
		if (!found)
			fail_msg("rule %s has no scene", rules[i].name);
	}
}

static void every_rule(void **state_)
{
	const struct block *b;
	struct verdict v;

	(void)state_;
	for (const struct scene *s = next_scene(NULL); s; s = next_scene(s)) {
		scene_play(s->play);
		v = judge(NULL, &b);
		assert_string_equal(verdict_rule(v), s->rule);
		assert_string_equal(categories[v.category].name, s->category);
		v = judge(s->rule, &b);
		assert_string_equal(verdict_rule(v), s->next);
		scene_end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_rule_has_a_scene),
		cmocka_unit_test(what_was_measured_is_a_rule),
		cmocka_unit_test(every_rule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
