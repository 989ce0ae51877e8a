/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings of every released version decode to the text beside them, for ever; broken ones give
 * what tests/data/bad/expected.txt says, and every file there is in it. Runs in the root.
 *
 * links: tests/unit/recordings.c
 */
#include <glob.h>

#include "recordings.h"

static char *describe(const struct heard *h, size_t *len)
{
	char *text;
	FILE *f = open_memstream(&text, len);

	assert_non_null(f);
	for (size_t i = 0; i < h->defs_used; i++)
		describe_def(f, &h->defs[i]);
	for (size_t i = 0; i < h->events_used; i++)
		describe_event(f, &h->events[i]);
	fclose(f);
	return text;
}

static void golden_recordings_decode(void **state)
{
	glob_t found;

	(void)state;
	assert_int_equal(glob("tests/data/v*/*.gmt", 0, NULL, &found), 0);
	assert_true(found.gl_pathc >= 4);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct heard h = hear(found.gl_pathv[i]);
		char path[300], *text;
		struct bytes want;
		size_t len;

		snprintf(path, sizeof(path), "%s.txt", found.gl_pathv[i]);
		want = read_file(path);
		assert_int_equal(h.err, 0);
		assert_int_equal(h.info.pid, 4242);
		assert_int_equal(h.info.realtime_minus_monotonic_ns, 1700000000000000000);
		assert_int_equal(h.info.damaged_blocks + h.info.skipped_bytes, 0);
		assert_int_equal(h.info.clean_end, !strstr(path, "killed"));
		text = describe(&h, &len);
		if (len != want.len || memcmp(text, want.data, len))
			fail_msg("%s does not decode to what is beside it", found.gl_pathv[i]);
		free(text);
		free(want.data);
		heard_free(&h);
	}
	globfree(&found);
}

static int error_number(const char *name)
{
	static const struct {
		const char *name;
		int number;
	} errors[] = {
#define ERR(id, number, text) { #id, number },
#include "../../format/errors.def"
#undef ERR
	};

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (strcmp(errors[i].name, name) == 0)
			return -errors[i].number;
	fail_msg("no error is called %s", name);
	return 0;
}

static void check_bad(const char *line)
{
	char name[64], error[32], skipped[8] = "", clean[8] = "", path[100];
	unsigned events = 0, damaged = 0;
	int n = sscanf(line, "%63s %31s %u %u %7s %7s", name, error, &events, &damaged, skipped,
		       clean);
	struct heard h;

	assert_true(n == 2 || n == 6);
	snprintf(path, sizeof(path), "tests/data/bad/%s", name);
	h = hear(path);
	if (h.err != error_number(error) || h.events_used != events ||
	    h.info.damaged_blocks != damaged || !h.info.skipped_bytes != (*skipped != 'y') ||
	    h.info.clean_end != (*clean == 'y'))
		fail_msg("%s gave error %d, %zu events, %d damaged blocks, %d skipped bytes, "
			 "clean end %d",
			 name, h.err, h.events_used, (int)h.info.damaged_blocks,
			 (int)h.info.skipped_bytes, h.info.clean_end);
	heard_free(&h);
}

static void broken_recordings_say_what_is_wrong(void **state)
{
	FILE *f = fopen("tests/data/bad/expected.txt", "r");
	char line[200];
	glob_t found;
	size_t lines = 0;

	(void)state;
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (line[0] != '#') {
			check_bad(line);
			lines++;
		}
	fclose(f);
	assert_int_equal(glob("tests/data/bad/*.gmt", 0, NULL, &found), 0);
	assert_int_equal(glob("tests/data/bad/*.live", GLOB_APPEND, NULL, &found), 0);
	assert_int_equal(found.gl_pathc, lines);
	globfree(&found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_recordings_decode),
		cmocka_unit_test(broken_recordings_say_what_is_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
