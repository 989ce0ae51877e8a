/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every rule of the classifier: a short life of a block that the rule, and no other, decides. Each
 * is judged twice: with all rules, and with that rule left out, where the answer must be another.
 * links: tests/unit/recordings.c tests/unit/scenes.c tests/unit/scenes_of_rules.c
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
	char reason[1024];

	stacks_init(&stacks, &defs, symbols_new(&defs));
	owners_init(&owners, &stacks);
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
			verdict_reason(c, v, *block, reason, sizeof(reason));
			assert_non_null(strstr(reason, "It was born at "));
		}
	classifier_free(c);
	owners_free(&owners);
	symbols_free(stacks.symbols);
	stacks_free(&stacks);
	assert_non_null(*block);
	return v;
}

/* A rule without a scene would be judged by nobody. */
static void every_rule_has_a_scene(void **state_)
{
	enum { WHEN_NONE, WHEN_LEAF, WHEN_GRAD, WHEN_SAVED, WHEN_DIED };
	static const struct {
		const char *name;
		enum category category;
		unsigned confidence, when;
		rule_fits *fits;
		const char *because;
	} rules[] = {
#include "../../viewer/classes/rules.def"
	};

	(void)state_;
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		bool found = false;

		for (size_t k = 0; k < scene_count; k++)
			found |= !strcmp(all_scenes[k].rule, rules[i].name) &&
				 !strcmp(all_scenes[k].category, category_name(rules[i].category));
		if (!found)
			fail_msg("rule %s has no scene", rules[i].name);
	}
}

static void every_rule(void **state_)
{
	const struct block *b;
	struct verdict v;

	(void)state_;
	for (size_t i = 0; i < scene_count; i++) {
		scene_play(all_scenes[i].play);
		v = judge(NULL, &b);
		assert_string_equal(verdict_rule(v), all_scenes[i].rule);
		assert_string_equal(category_name(v.category), all_scenes[i].category);
		assert_in_range(verdict_confidence(v), 50, 100);
		v = judge(all_scenes[i].rule, &b);
		assert_string_equal(verdict_rule(v), all_scenes[i].next);
		scene_end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_rule_has_a_scene),
		cmocka_unit_test(every_rule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
