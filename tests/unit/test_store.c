/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rendezvous of a world of which some ranks run: what these set and add, what is made for the
 * others, and the protocol, whole, in pieces of one byte, and broken.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../../viewer/search/gloo.h"
#include "../../viewer/search/store_wire.h"
#include "../../viewer/search/world.h"

static const struct world world = { .size = 512, .ranks = { 0, 256, 511 }, .count = 3, .node = 8 };

static struct piece s(const char *text)
{
	return (struct piece){ text, strlen(text) };
}

static void is(struct piece value, const char *text)
{
	assert_int_equal(value.len, strlen(text));
	assert_memory_equal(value.p, text, value.len);
}

static void what_is_set(void **state)
{
	struct store *t = store_new(&world, NULL);
	struct piece popped;

	(void)state;
	store_set(t, 0, s("a"), s("one"));
	store_append(t, 1, s("a"), s(" two"));
	is(store_get(t, 2, s("a")), "one two");
	is(store_compare_set(t, 1, s("a"), s("one"), s("x")), "one two");
	is(store_compare_set(t, 1, s("a"), s("one two"), s("x")), "x");
	is(store_compare_set(t, 1, s("new"), s(""), s("y")), "y");
	is(store_compare_set(t, 1, s("other"), s("z"), s("y")), "z");
	assert_int_equal(store_count(t), 2);
	assert_true(store_delete(t, s("a")) && !store_delete(t, s("a")) && !store_has(t, s("a")));
	store_push(t, 0, s("q"), s("1"));
	store_push(t, 0, s("q"), s("2"));
	assert_int_equal(store_length(t, s("q")), 2);
	assert_true(store_ready(t, 1, s("q"), true) && store_pop(t, s("q"), &popped));
	is(popped, "1");
	assert_true(store_pop(t, s("q"), &popped) && !store_pop(t, s("q"), &popped));
	store_set(t, 0, s("number"), s("5"));
	assert_int_equal(store_add(t, 0, s("number"), 2), 7);
	store_free(t);
}

/* A barrier of 512 is over once the three that run are there. */
static void what_others_add(void **state)
{
	struct store *t = store_new(&world, NULL);

	(void)state;
	assert_int_equal(store_add(t, 0, s("barrier"), 1), 1);
	assert_int_equal(store_add(t, 1, s("barrier"), 1), 2);
	assert_int_equal(store_add(t, 0, s("barrier"), 0), 2);
	assert_int_equal(store_add(t, 2, s("barrier"), 1), 512);
	is(store_get(t, 0, s("barrier")), "512");
	store_free(t);
}

static void what_is_made(void **state)
{
	struct store *t = store_new(&world, NULL);

	(void)state;
	store_set(t, 0, s("group/1/0"), s("of 0"));
	store_set(t, 1, s("group/33/256"), s("of 256"));
	assert_false(store_ready(t, 1, s("group/7/8"), true));
	assert_true(store_ready(t, 1, s("group/7/8"), false));
	is(store_get(t, 1, s("group/7/8")), "of 256");
	assert_true(store_ready(t, 2, s("group/64/3"), false));
	assert_false(store_has(t, s("group/7/8")));
	assert_int_equal(store_count(t), 2);
	store_set(t, 2, s("group/7/8"), s("real"));
	is(store_get(t, 1, s("group/7/8")), "real");
	assert_true(store_ready(t, 0, s("like/no/other"), false));
	assert_int_equal(store_get(t, 0, s("like/no/other")).len, MADE_BYTES);
	assert_int_equal(atoi(store_get(t, 0, s("like/no/other")).p), 0);
	store_wait(t, 0, s("x/1"));
	assert_false(store_has_been(t, 1, 0, s("x/9")));
	store_set(t, 1, s("x/2"), s(""));
	assert_true(store_has_been(t, 1, 0, s("x/9")));
	store_free(t);
}

/* ---- the protocol ---- */

static void add_number(struct bytes *b, uint64_t n, size_t bytes)
{
	bytes_add(b, &n, bytes);
}

static void add_text(struct bytes *b, const char *text)
{
	add_number(b, strlen(text), 8);
	bytes_add(b, text, strlen(text));
}

static bool hopeless(void *ctx, const struct wire *w, struct piece key)
{
	(void)ctx, (void)w, (void)key;
	return false;
}

#define LONG "a key of which some bytes could be taken for a length"

/* A client's whole life; the wait is over between two pieces. */
static struct bytes requests(void)
{
	struct bytes b = { 0 };

	add_number(&b, 0, 1), add_number(&b, 0x3c85f7ce, 4);
	add_number(&b, 13, 1), add_number(&b, 77, 4);
	add_number(&b, 1, 1), add_text(&b, "k"), add_text(&b, "v");
	add_number(&b, 5, 1), add_number(&b, 2, 8), add_text(&b, "k"), add_text(&b, "l");
	add_number(&b, 6, 1), add_number(&b, 1, 8), add_text(&b, "l");
	add_number(&b, 12, 1);
	add_number(&b, 4, 1), add_text(&b, "n"), add_number(&b, 3, 8);
	add_number(&b, 11, 1), add_number(&b, 2, 8), add_text(&b, "m"), add_text(&b, "M");
	add_text(&b, "o"), add_text(&b, "O");
	add_number(&b, 10, 1), add_number(&b, 2, 8), add_text(&b, "o"), add_text(&b, "m");
	add_number(&b, 2, 1), add_text(&b, "k"), add_text(&b, "v"), add_text(&b, "w");
	add_number(&b, 9, 1), add_text(&b, "k"), add_text(&b, "!");
	add_number(&b, 3, 1), add_text(&b, "k");
	add_number(&b, 7, 1);
	add_number(&b, 8, 1), add_text(&b, "k");
	add_number(&b, 14, 1), add_text(&b, LONG), add_text(&b, "first");
	add_number(&b, 16, 1), add_text(&b, LONG);
	add_number(&b, 15, 1), add_text(&b, LONG);
	add_number(&b, 6, 1), add_number(&b, 1, 8), add_text(&b, "never");
	return b;
}

static struct bytes answers(void)
{
	struct bytes b = { 0 };

	add_number(&b, 77, 4);
	add_number(&b, 1, 1); /* not both are there */
	add_number(&b, 1, 1); /* cancelled */
	add_number(&b, 3, 8);
	add_text(&b, "O"), add_text(&b, "M");
	add_text(&b, "w");
	add_text(&b, "w!");
	add_number(&b, 4, 8);
	add_number(&b, 1, 8);
	add_number(&b, 1, 8);
	add_number(&b, 1, 8), add_text(&b, "first");
	return b;
}

static void the_protocol(void **state)
{
	const struct world alone = { .size = 1, .ranks = { 0 }, .count = 1, .node = 1 };
	struct bytes ask = requests(), expected = answers();

	(void)state;
	for (size_t step = 1; step <= ask.len; step += step == 1 ? 6 : ask.len - 7) {
		struct store *t = store_new(&alone, NULL);
		struct wire w = { .who = 0 };

		for (size_t at = 0; at < ask.len; at += step) {
			size_t n = ask.len - at < step ? ask.len - at : step;

			bytes_add(&w.in, ask.p + at, n);
			assert_true(wire_take(&w, t, 5));
		}
		assert_int_equal(w.out.len, expected.len);
		assert_memory_equal(w.out.p, expected.p, expected.len);
		assert_true(w.waiting && w.since_ms == 5);
		wire_look(&w, t, hopeless, NULL);
		assert_true(!w.waiting && w.out.len == expected.len + 1);
		wire_free(&w);
		store_free(t);
	}
	bytes_free(&ask);
	bytes_free(&expected);
}

/* No bytes harm it: a connection that says something else ends. */
static void what_is_no_protocol(void **state)
{
	const uint8_t unknown[] = { 0, 0xce, 0xf7, 0x85, 0x3c, 99 };
	uint8_t huge[] = { 0, 0xce, 0xf7, 0x85, 0x3c, 3, 1, 2, 3, 4, 5, 6, 7, 8 };
	struct bytes ask = requests();

	(void)state;
	srand(1);
	for (int i = 0; i < 2000; i++) {
		struct store *t = store_new(&world, NULL);
		struct wire w = { .who = 1 };

		if (i == 0)
			bytes_add(&w.in, "GET / HTTP/1.1\r\n", 16);
		else if (i == 1)
			bytes_add(&w.in, unknown, sizeof(unknown));
		else if (i == 2)
			bytes_add(&w.in, huge, sizeof(huge));
		else
			bytes_add(&w.in, ask.p, ask.len);
		for (int k = 0; k < 3 && i > 2; k++)
			w.in.p[(size_t)rand() % w.in.len] = (uint8_t)rand();
		assert_true(!wire_take(&w, t, 0) || i > 2);
		wire_look(&w, t, hopeless, NULL);
		wire_free(&w);
		store_free(t);
	}
	bytes_free(&ask);
}

/* ---- gloo ---- */

static void add_preamble(struct bytes *b, uint64_t kind, uint64_t slot, const char *data)
{
	uint64_t len = strlen(data);
	const uint64_t p[] = { 48 + (kind == 1 ? len : 0), kind, slot, 0, len, 0 };

	bytes_add(b, p, sizeof(p));
	if (kind == 1)
		bytes_add(b, data, len);
}

/* Blocks in two pieces come back as they went; the root's data of another rank; zeros of nobody. */
static void what_peers_send(void **state)
{
	struct gloo g = { 0 };
	struct gloo_wire left = { .who = 0 }, right = { .who = 0 }, other = { .who = 1 };
	struct bytes expected = { 0 };

	(void)state;
	bytes_add(&left.in, "12345678", 8);
	bytes_add(&right.in, "12345678", 8);
	bytes_add(&other.in, "12345678", 8);
	add_preamble(&left.in, 3, 7, "....");
	add_preamble(&left.in, 3, 7, "....");
	assert_true(gloo_take(&left, &g, 1000));
	gloo_look(&left, &g, 1000, 1000);
	assert_int_equal(left.out.len, 0);
	add_preamble(&right.in, 2, 7, "....");
	add_preamble(&right.in, 1, 7, "abcd");
	add_preamble(&right.in, 1, 7, "efgh");
	assert_true(gloo_take(&right, &g, 1000));
	assert_int_equal(right.out.len, 48); /* we are ready to receive */
	gloo_look(&left, &g, 1001, 1000);
	add_preamble(&expected, 2, 7, "abcd"), add_preamble(&expected, 1, 7, "abcd");
	add_preamble(&expected, 2, 7, "efgh"), add_preamble(&expected, 1, 7, "efgh");
	assert_int_equal(left.out.len, expected.len);
	assert_memory_equal(left.out.p, expected.p, expected.len);
	add_preamble(&other.in, 3, 7, "....");
	add_preamble(&other.in, 3, 8, "..");
	assert_true(gloo_take(&other, &g, 2000));
	gloo_look(&other, &g, 2300, 2300);
	assert_int_equal(other.out.len, 100);
	assert_memory_equal(other.out.p + 96, "abcd", 4);
	gloo_look(&other, &g, 2300, 0);
	assert_int_equal(other.out.len, 198);
	assert_memory_equal(other.out.p + 196, "\0\0", 2);
	other.in.len = 0;
	add_preamble(&other.in, 9, 8, "..");
	assert_false(gloo_take(&other, &g, 0));
	gloo_wire_free(&left), gloo_wire_free(&right), gloo_wire_free(&other);
	gloo_free(&g);
	bytes_free(&expected);
}

/* Where another rank listens is where we do. */
static void where_peers_are(void **state)
{
	const int ports[] = { 0x500, 0x600, 0x700 };
	struct store *t = store_new(&world, ports);
	uint64_t name = 4, address = 136;
	uint8_t socket[136] = { 2, 0, 0x11, 0x22, 10, 1, 2, 3 };
	const uint8_t ours[] = { 2, 0, 6, 0, 127, 0, 0, 1 };
	struct bytes value = { 0 };
	struct piece got;

	(void)state;
	bytes_add(&value, &name, 8), bytes_add(&value, "host", 4);
	bytes_add(&value, &address, 8), bytes_add(&value, socket, sizeof(socket));
	store_set(t, 0, s("cpu//0/0"), (struct piece){ (const char *)value.p, value.len });
	got = store_get(t, 0, s("cpu//0/0"));
	assert_memory_equal(got.p, value.p, value.len);
	assert_true(store_ready(t, 1, s("cpu//0/77"), true)); /* is not waited for */
	for (const char *const *key = (const char *const[]){ "cpu//0/0", "cpu//0/77", NULL }; *key;
	     key++) {
		got = store_get(t, 1, s(*key));
		assert_int_equal(got.len, value.len);
		assert_memory_equal(got.p + 20, ours, sizeof(ours));
	}
	for (size_t len = 0; len < value.len; len++)
		assert_false(gloo_address((struct piece){ (const char *)value.p, len }, 1,
					  &(struct bytes){ 0 }));
	assert_true(gloo_port(0) == 0x400 && gloo_port(1000) == 0);
	store_free(t);
	bytes_free(&value);
}

/* ---- which ranks run ---- */

static void ranks_of_a_world(void **state)
{
	struct world w;

	(void)state;
	unsetenv("LOCAL_WORLD_SIZE");
	assert_int_equal(world_parse(&w, "512"), 0);
	assert_true(w.size == 512 && w.count == 3 && w.ranks[1] == 256 && w.ranks[2] == 511);
	assert_int_equal(w.node, 8);
	assert_int_equal(world_parse(&w, "16"), 0);
	assert_true(w.size == 16 && !w.count);
	assert_int_equal(world_parse(&w, "4:3,0,3"), 0);
	assert_true(w.size == 4 && w.count == 2 && w.ranks[0] == 0 && w.ranks[1] == 3);
	assert_int_equal(w.node, 4);
	assert_int_equal(world_parse(&w, NULL), 0);
	assert_true(!w.size && !w.count);
	for (const char *const *bad =
		     (const char *const[]){ "", "0", "-1", "4:", "4:4", "4:1,", "x", "4:1;2",
					    "9:0,1,2,3,4,5,6,7,8", NULL };
	     *bad; bad++)
		assert_int_equal(world_parse(&w, *bad), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_set),	       cmocka_unit_test(what_others_add),
		cmocka_unit_test(what_is_made),	       cmocka_unit_test(the_protocol),
		cmocka_unit_test(what_is_no_protocol), cmocka_unit_test(what_peers_send),
		cmocka_unit_test(where_peers_are),     cmocka_unit_test(ranks_of_a_world),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
