/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbols found by reading tables against what the loader finds, for every name that the loaded
 * libraries export.
 * links: shim/base/elfsym.c shim/base/forkgate.c shim/base/os.c
 */
#include "../../shim/base/elfsym.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const names[] = {
	"malloc", "free",   "printf",	  "pthread_create", "environ", "dlopen", "cos",
	"sin",	  "getpid", "strerror_r", "memcpy",	    "qsort",   "stdout", "write",
};

/* memcpy, cos and others are chosen by the processor: their symbol is the chooser, and is not
 * given. */
static int chosen_at_run_time(const char *name)
{
	return !strcmp(name, "memcpy") || !strcmp(name, "cos") || !strcmp(name, "sin");
}

static void test_same_as_the_loader(void **state)
{
	(void)state;
	assert_true(cos(0) > 0.5);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *theirs = dlsym(RTLD_NEXT, names[i]);

		if (chosen_at_run_time(names[i]) || !theirs)
			continue;
		assert_ptr_equal(elfsym_find(names[i]), theirs);
	}
}

static void test_not_there(void **state)
{
	(void)state;
	assert_null(elfsym_find("gpumemtrace_no_such_symbol"));
	assert_null(elfsym_find(""));
	assert_null(elfsym_find("test_not_there"));
}

static void test_path(void **state)
{
	char path[256], cut[8];

	(void)state;
	assert_true(elfsym_path("libc.so.6", path, sizeof(path)));
	assert_string_equal(strrchr(path, '/'), "/libc.so.6");
	assert_true(elfsym_path("libc.so.6", cut, sizeof(cut)));
	assert_int_equal(strlen(cut), sizeof(cut) - 1);
	assert_false(elfsym_path("libc.so", path, sizeof(path)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_as_the_loader),
		cmocka_unit_test(test_not_there),
		cmocka_unit_test(test_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
