/* SPDX-License-Identifier: Apache-2.0 */
#include "preload.h"

#include <dlfcn.h>

#include "../base/proc.h"

/* Relative to the folder of this program: a build folder, an installation. */
static const char *const places[] = { "", "../lib/", "../lib/gpumemtrace/", "build/" };

static bool own_folder(char folder[PATH_MAX])
{
	char *slash = proc_own_path(folder) ? strrchr(folder, '/') : NULL;

	if (slash)
		slash[1] = 0;
	return slash;
}

static bool find_library(const char *name, char path[PATH_MAX])
{
	char folder[PATH_MAX], candidate[PATH_MAX + 64];

	if (!own_folder(folder))
		return false;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(candidate, sizeof(candidate), "%s%s%s", folder, places[i], name);
		if (realpath(candidate, path))
			return true;
	}
	return false;
}

static int prepend(const char *variable, const char *path)
{
	const char *old = getenv(variable);
	char *value;

	if (strpbrk(path, " :"))
		return say_error(EXIT_UNREADABLE,
				 "%s: a path with a space or a colon cannot be preloaded; move it",
				 path);
	if (asprintf(&value, "%s%s%s", path, old && *old ? ":" : "", old ? old : "") < 0)
		return say_error(EXIT_UNREADABLE, "out of memory");
	setenv(variable, value, 1);
	free(value);
	return 0;
}

static int load(const char *variable, const char *name)
{
	char path[PATH_MAX];

	if (!find_library(name, path))
		return say_error(EXIT_UNREADABLE,
				 "%s was not found beside this program or in ../lib: "
				 "install gpumemtrace again (a build with SIMGPU=no has no "
				 "simulated device)",
				 name);
	return prepend(variable, path);
}

void *preload_simulator(void)
{
	char path[PATH_MAX];

	return find_library("libsimgpu.so", path) ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : NULL;
}

/* The simulated driver itself says whether it knows the card, and names those it knows. */
static int check_card(void)
{
	void *driver = preload_simulator();
	int (*init)(unsigned) = driver ? (int (*)(unsigned))dlsym(driver, "cuInit") : NULL;

	return init && init(0) ? EXIT_USAGE : 0;
}

int preload_set(bool simulated)
{
	int rc = simulated ? check_card() : 0;

	if (simulated && !rc)
		rc = load("LD_PRELOAD", "libsimgpu.so");
	if (!rc && simulated)
		rc = load("LD_LIBRARY_PATH", "simgpu");
	return rc ? rc : load("LD_PRELOAD", "libgpumemtrace.so");
}

int preload_link(const char *cuda)
{
	char lib[PATH_MAX + 8];
	int rc;

	snprintf(lib, sizeof(lib), "%s/lib", cuda);
	rc = prepend("LIBRARY_PATH", lib);
	if (!rc)
		rc = load("LIBRARY_PATH", "simgpu");
	return rc ? rc : load("LIBRARY_PATH", "simgpu/link");
}
