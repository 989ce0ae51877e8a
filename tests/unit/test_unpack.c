/* SPDX-License-Identifier: Apache-2.0 */
/* A file in memory is a copy: what another program does to the file is not seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../viewer/base/unpack.h"

#define BYTES (3u << 20)

static void is_not_cut_with_its_file(void **state)
{
	char path[] = "/tmp/gpumemtrace-unpack.XXXXXX";
	int fd = mkstemp(path);
	uint8_t *bytes = malloc(BYTES);
	struct unpacked u;

	(void)state;
	for (size_t i = 0; i < BYTES; i++)
		bytes[i] = (uint8_t)(i % 251);
	assert_int_equal(write(fd, bytes, BYTES), BYTES);
	assert_int_equal(unpack_file(path, &u), 0);
	assert_int_equal(ftruncate(fd, 0), 0); /* a mapped page beyond the end is SIGBUS */
	assert_int_equal(u.len, BYTES);
	assert_memory_equal(u.data, bytes, BYTES);
	unpack_free(&u);
	assert_null(u.data);
	close(fd);
	unlink(path);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(is_not_cut_with_its_file) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
