/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the reader refuses to open, each with its own error.
 *
 * links: tests/unit/recordings.c
 */
#include <errno.h>

#include "recordings.h"
#include "../../format/record.h"

static void refuse(const char *path, int err, int number)
{
	int got;

	errno = 0;
	assert_null(gmt_reader_open(path, &got));
	assert_int_equal(got, err);
	if (number)
		assert_int_equal(errno, number);
}

static void what_is_no_recording(void **state)
{
	const char *path = scratch_path("odd.gmt");
	struct gmt_file_header h = { .version = GMT_VERSION + 1, .header_bytes = 64 };

	(void)state;
	refuse("/nonexistent/x.gmt", -GMT_ERR_SYS, ENOENT);
	refuse("/tmp", -GMT_ERR_SYS, EISDIR);
	refuse("/dev/null", -GMT_ERR_NOT_A_RECORDING, 0);
	write_file(path, "", 0);
	refuse(path, -GMT_ERR_EMPTY, 0);
	write_file(path, "hello, this is no recording", 27);
	refuse(path, -GMT_ERR_NOT_A_RECORDING, 0);
	gmt_file_header_seal(&h);
	write_file(path, &h, 5);
	refuse(path, -GMT_ERR_DAMAGED_HEADER, 0);
	write_file(path, &h, sizeof(h));
	refuse(path, -GMT_ERR_NEWER_VERSION, 0);
	h.version = 1;
	write_file(path, &h, sizeof(h)); /* checksum of another version: damaged */
	refuse(path, -GMT_ERR_DAMAGED_HEADER, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_recording),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
