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

struct seen {
	size_t count, wrong, of_ours;
};

/* The loader finds the same address by the name of most functions; the others have versions. */
static void compare(void *ctx, uint64_t start, uint64_t size, const char *name)
{
	struct seen *seen = ctx;
	void *theirs = dlsym(RTLD_DEFAULT, name);
	Dl_info found;

	seen->count++;
	seen->of_ours += theirs == (void *)start;
	if (!size || !dladdr((void *)start, &found) || found.dli_saddr != (void *)start)
		seen->wrong++;
}

static int compare_libc(struct dl_phdr_info *info, size_t size, void *ctx)
{
	(void)size;
	if (strstr(info->dlpi_name, "/libc.so."))
		elfsym_functions(info, compare, ctx);
	return 0;
}

static void test_every_function(void **state)
{
	struct seen seen = { 0 };

	(void)state;
	dl_iterate_phdr(compare_libc, &seen);
	assert_true(seen.count > 1000);
	assert_int_equal(seen.wrong, 0);
	assert_true(seen.of_ours > seen.count / 2);
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
		cmocka_unit_test(test_every_function),
		cmocka_unit_test(test_not_there),
		cmocka_unit_test(test_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
