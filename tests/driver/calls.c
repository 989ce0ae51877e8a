/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls every function of hooks.def, of the driver by its symbol and of the runtime that is named
 * on the command line, where there is no device: each must refuse, and write one line "NAME CODE".
 * Whatever the parameters are, they are addresses of one empty page: nothing is done with them.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef int any(void *, void *, void *, void *, void *, void *, void *, void *, void *, void *,
		void *, void *, void *, void *);

static char page[4096] __attribute__((aligned(4096)));

static const char *const driver_names[] = {
#define DRIVER(symbol, name, version, per_thread, proto, args, effect) #symbol,
#include "../../shim/hooks.def"
};

static const char *const runtime_names[] = {
#define RUNTIME(name, proto, args, effect) #name,
#include "../../shim/hooks.def"
};

static void call(void *library, const char *name)
{
	any *f = (any *)dlsym(library, name);
	void *p = page;

	memset(page, 0, sizeof(page));
	if (!f)
		printf("%s none\n", name);
	else
		printf("%s %d\n", name, f(p, p, p, p, p, p, p, p, p, p, p, p, p, p));
}

static int load(const char *path, const char *const *names, size_t count)
{
	void *library = dlopen(path, RTLD_NOW);

	if (!library) {
		printf("%s\n", dlerror());
		return 1;
	}
	for (size_t i = 0; i < count; i++)
		call(library, names[i]);
	return 0;
}

int main(int argc, char **argv)
{
	int rc = load("libcuda.so.1", driver_names, sizeof(driver_names) / sizeof(driver_names[0]));

	for (int i = 1; i < argc && !rc; i++)
		rc = load(argv[i], runtime_names, sizeof(runtime_names) / sizeof(runtime_names[0]));
	return rc;
}
