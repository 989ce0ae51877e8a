/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Engines compile kernels with nvcc when they start, or load libraries with NVIDIA's runtime
 * inside. Neither runs on the simulated device. Their own settings choose the other path.
 */
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/say.h"
#include "engine_settings.h"

static const struct setting {
	const char *package, *name, *value, *why;
} settings[] = {
	{ "vllm", "VLLM_USE_FLASHINFER_SAMPLER", "0", "that sampler is compiled by nvcc" },
	{ "flashinfer", "FLASHINFER_USE_CUDA_NORM", "1",
	  "the other one has NVIDIA's runtime inside" },
};

/* Whether a Python whose programs are in this folder has the package. */
static bool folder_has(const char *folder, size_t len, const char *package)
{
	char pattern[PATH_MAX + 80];
	glob_t found;
	bool has;

	snprintf(pattern, sizeof(pattern), "%.*s/../lib/python3*/{site,dist}-packages/%s", (int)len,
		 folder, package);
	has = !glob(pattern, GLOB_BRACE | GLOB_NOSORT, NULL, &found);
	globfree(&found);
	return has;
}

/* The first folder of the PATH that has the program. */
static bool path_has(const char *program, const char *package)
{
	char file[PATH_MAX];
	const char *path = getenv("PATH");

	for (size_t n; path && *path; path += n + (path[n] == ':')) {
		n = strcspn(path, ":");
		snprintf(file, sizeof(file), "%.*s/%s", (int)n, path, program);
		if (!access(file, X_OK))
			return folder_has(path, n, package);
	}
	return false;
}

static bool has_package(const char *program, const char *package)
{
	static const char *const roots[] = { "VIRTUAL_ENV", "CONDA_PREFIX" };
	const char *slash = strrchr(program, '/');
	char bin[PATH_MAX];

	if (slash ? folder_has(program, slash - program, package) : path_has(program, package))
		return true;
	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++)
		if (getenv(roots[i])) {
			snprintf(bin, sizeof(bin), "%s/bin", getenv(roots[i]));
			if (folder_has(bin, strlen(bin), package))
				return true;
		}
	return false;
}

void engine_settings_set(char *const *command, bool quiet)
{
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		const struct setting *s = &settings[i];

		if (getenv(s->name) || !has_package(command[0], s->package))
			continue;
		setenv(s->name, s->value, 1);
		if (!quiet)
			say_note("%s=%s is set for %s on the simulated device: %s", s->name,
				 s->value, s->package, s->why);
	}
}
