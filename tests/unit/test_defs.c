/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Definitions: what comes in comes out; payloads of any bytes are counted or kept, and never read
 * beyond their end.
 * links: tests/unit/recordings.c
 */
#include "recordings.h"

#include "../../format/record.h"
#include "../../viewer/recording/defs.h"
#include "../../viewer/recording/owners.h"
#include "../../viewer/recording/variables.h"

static void add(struct defs *d, unsigned kind, uint32_t id, const void *payload, size_t len)
{
	uint8_t *exact = malloc(len ? len : 1); /* so that a sanitizer sees a step too far */
	struct gmt_def def = { kind, id, (uint32_t)len, exact };

	if (len)
		memcpy(exact, payload, len);
	assert_int_equal(defs_add(d, &def), 0);
	free(exact);
}

static void strings_and_facts(void **state)
{
	struct defs d = { 0 };

	(void)state;
	add(&d, GMT_DEF_STRING, 7, "a\0b", 3);
	add(&d, GMT_DEF_STRING, 8, "", 0);
	add(&d, GMT_DEF_META, 0, "\x03\0keyvalue", 10);
	add(&d, GMT_DEF_META, 0, "\x03\0keylater", 10);
	add(&d, GMT_DEF_META, 0, "\x09\0key", 5);
	add(&d, 99, 1, "of a later version", 5);
	assert_memory_equal(defs_string(&d, 7).s, "a\0b", 4);
	assert_int_equal(defs_string(&d, 7).len, 3);
	assert_int_equal(defs_string(&d, 8).len, 0);
	assert_int_equal(defs_string(&d, 9).len, 0);
	assert_string_equal(defs_meta(&d, "key").s, "later");
	assert_int_equal(defs_meta(&d, "none").len, 0);
	assert_int_equal(d.bad, 1);
	add(&d, GMT_DEF_STRING, 7, "again", 5);
	assert_string_equal(defs_string(&d, 7).s, "again");
	assert_int_equal(d.strings.count, 2);
	defs_free(&d);
}

static void a_long_text(void **state)
{
	size_t len = 3 << 20;
	char *text = malloc(len);
	struct defs d = { 0 };

	(void)state;
	memset(text, 'x', len);
	add(&d, GMT_DEF_STRING, 1, text, len);
	add(&d, GMT_DEF_STRING, 2, "short", 5);
	assert_int_equal(strlen(defs_string(&d, 1).s), len);
	assert_string_equal(defs_string(&d, 2).s, "short");
	free(text);
	defs_free(&d);
}

static uint64_t likely(struct chance *c)
{
	return chance_below(c, 4) ? chance_below(c, 40) : chance_next(c);
}

/* Small numbers most of the time, so that lengths often fit. */
static void any_payload(struct defs *d, struct chance *c)
{
	uint8_t payload[96];

	for (size_t i = 0; i < sizeof(payload); i += 4) {
		uint32_t word = (uint32_t)likely(c);

		memcpy(payload + i, &word, 4);
	}
	add(d, chance_below(c, 9) ? (unsigned)chance_below(c, 8) : GMT_DEF_VARIABLES,
	    (uint32_t)chance_below(c, 50), payload, chance_below(c, sizeof(payload)));
}

static void payloads_of_any_bytes(void **state)
{
	struct chance c = { 21 };
	struct defs d = { 0 };
	struct stacks stacks;
	struct owners owners;

	(void)state;
	for (int i = 0; i < 20000; i++)
		any_payload(&d, &c);
	assert_true(d.bad > 100 && d.codes.count > 10 && d.nodes.count > 10 &&
		    d.modules.count > 10 && d.frames.count > 10);
	owners_open(&owners, &stacks, &d);
	for (uint32_t id = 0; id < 60; id++) {
		struct block b = { .stack = id, .name = id % 3, .seq = id, .memory = id % 2 };

		stacks_read(&stacks, id, id);
		owners_find(&owners, &b);
		assert_non_null(owners_library(&owners, &b));
	}
	owners_close(&owners);
	defs_free(&d);
}

/* A record of `x` and of what is left of `y`, both [3, 5] of float16. */
static void add_frame(struct defs *d, uint64_t seq, uint32_t node, uint32_t count, size_t left_out)
{
	struct gmt_variable head = {
		.addr = seq, .bytes = 64, .type = 5, .dims = 2, .name_len = 1
	};
	const uint64_t sizes[] = { 3, 5 };
	struct gmt_def_variables h = { seq, node, (uint16_t)count, 0 };
	uint8_t payload[200];
	size_t at = sizeof(h);

	memcpy(payload, &h, sizeof(h));
	for (unsigned i = 0; i < 2; i++) {
		memcpy(payload + at, &head, sizeof(head));
		memcpy(payload + at + sizeof(head), sizes, sizeof(sizes));
		at += sizeof(head) + sizeof(sizes);
		payload[at++] = (uint8_t)('x' + i);
	}
	add(d, GMT_DEF_VARIABLES, 1, payload, at - left_out);
}

static void variables_of_frames(void **state)
{
	struct defs d = { 0 };
	const struct defs_variables *x;
	const struct defs_variable *v;
	char shape[VARIABLE_SHAPE];

	(void)state;
	add_frame(&d, 10, 7, 2, 0);
	add_frame(&d, 20, 7, 1, 0);
	add_frame(&d, 30, 8, 2, 0);
	add_frame(&d, 40, 7, 2, 1); /* cut: nothing of it counts */
	add_frame(&d, 40, 7, 3, 0);
	assert_int_equal(d.bad, 2);
	assert_int_equal(d.variable_count, 5);
	assert_null(defs_variables(&d, 9, 50));
	x = defs_variables(&d, 7, 15);
	assert_int_equal(x->count, 2);
	assert_int_equal(defs_variables(&d, 7, 5)->seq, 10); /* recorded only later */
	assert_int_equal(defs_variables(&d, 7, 50)->seq, 20);
	v = defs_variable(&d, x, 1);
	assert_string_equal(v->name.s, "y");
	assert_string_equal(variables_shape(v, shape), "[3, 5]");
	assert_string_equal(variables_type(v), "float16");
	defs_free(&d);
}

/* Which line holds a block: the innermost of the user's or the model's own code. */

static const char *const files[] = {
	"",
	"/home/u/train.py",
	"/v/lib/python3.11/site-packages/transformers/models/qwen2/modeling_qwen2.py",
	"/v/lib/python3.11/site-packages/torch/nn/modules/linear.py",
	"/v/lib/python3.11/contextlib.py",
	"<frozen runpy>",
	"/v/lib/python3.11/site-packages/transformers/modeling_utils.py",
};

static void code(struct defs *d, uint32_t id)
{
	struct gmt_def_code h = { id * 100, 0x30b, 0, (uint32_t)strlen(files[id]), 1, 0 };
	char payload[256];

	memcpy(payload, &h, sizeof(h));
	memcpy(payload + sizeof(h), files[id], h.file_len);
	payload[sizeof(h) + h.file_len] = 'f';
	add(d, GMT_DEF_CODE, id, payload, sizeof(h) + h.file_len + 1);
}

/* Line of the owner of a Python stack of these code objects, innermost first. */
static unsigned owner_line(const uint32_t *codes)
{
	struct defs d = { 0 };
	struct stacks stacks;
	struct owners owners;
	struct block b = { .seq = 1 };
	size_t n = 0;
	unsigned line;

	for (uint32_t id = 1; id < sizeof(files) / sizeof(files[0]); id++)
		code(&d, id);
	while (codes[n])
		n++;
	while (n-- > 0) {
		struct gmt_def_stack s = { (uint64_t)codes[n] << 32 | 1, b.stack,
					   GMT_FRAME_PYTHON };

		add(&d, GMT_DEF_STACK, ++b.stack, &s, sizeof(s));
	}
	owners_open(&owners, &stacks, &d);
	line = owners_find(&owners, &b).line;
	owners_close(&owners);
	defs_free(&d);
	return line;
}

#define OWNER(...) owner_line((const uint32_t[]){ __VA_ARGS__, 0 })

static void whose_line_it_is(void **state)
{
	(void)state;
	assert_int_equal(OWNER(3, 3, 2, 3, 1), 200); /* torch inside a model inside the script */
	assert_int_equal(OWNER(3, 4, 1), 100);	     /* torch and contextlib called by the script */
	assert_int_equal(OWNER(6, 5, 1), 100);	     /* what loads a model is not the model */
	assert_int_equal(OWNER(1, 2), 100);
	assert_int_equal(OWNER(3, 4), 300); /* nobody's own code: the innermost at all */
	assert_int_equal(OWNER(0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strings_and_facts),	 cmocka_unit_test(a_long_text),
		cmocka_unit_test(payloads_of_any_bytes), cmocka_unit_test(variables_of_frames),
		cmocka_unit_test(whose_line_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
