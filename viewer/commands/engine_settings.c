/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inference engines compile kernels with nvcc when they start, or load libraries that contain
 * NVIDIA's runtime, which does not run on the simulated device. If an engine has another code path,
 * its own setting selects that. If it has none, it needs nvcc. An nvcc in Python's packages, and
 * the libraries to link with, are found only if the environment names their folders.
 */
#include "run_program.h"

#include <glob.h>

#define NVCC "nvidia/cu13/bin/nvcc" /* in Python's packages since CUDA 13 */

static const struct setting {
	const char *package, *name, *value, *why; /* value: NULL is the folder above bin/nvcc */
} settings[] = {
	{ "vllm", "VLLM_USE_FLASHINFER_SAMPLER", "0", "that sampler is compiled by nvcc" },
	{ "flashinfer", "FLASHINFER_USE_CUDA_NORM", "1",
	  "the other one has NVIDIA's runtime inside" },
	{ "sglang", "CUDA_HOME", NULL, "it compiles kernels when it starts" },
};

/* Finds a file or folder in the packages of the Python whose bin folder is `folder`. */
static bool folder_has(const char *folder, size_t len, const char *name, char path[PATH_MAX])
{
	char pattern[PATH_MAX + 80];
	glob_t found;
	bool has;

	snprintf(pattern, sizeof(pattern), "%.*s/../lib/python3*/{site,dist}-packages/%s", (int)len,
		 folder, name);
	has = !glob(pattern, GLOB_BRACE | GLOB_NOSORT, NULL, &found) &&
	      realpath(found.gl_pathv[0], path);
	globfree(&found);
	return has;
}

static bool packages_have(const char *program, const char *name, char path[PATH_MAX])
{
	static const char *const roots[] = { "VIRTUAL_ENV", "CONDA_PREFIX" };
	char bin[PATH_MAX];

	if (run_program_path(program, bin) &&
	    folder_has(bin, (size_t)(strrchr(bin, '/') - bin), name, path))
		return true;
	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++)
		if (getenv(roots[i])) {
			snprintf(bin, sizeof(bin), "%s/bin", getenv(roots[i]));
			if (folder_has(bin, strlen(bin), name, path))
				return true;
		}
	return false;
}

/* Finds the folder above bin/nvcc. False: there is none, or nvcc is on the PATH already. */
static bool find_compiler(const char *program, const char *package, bool quiet, char path[PATH_MAX])
{
	if (run_program_path("nvcc", path))
		return false;
	if (!packages_have(program, NVCC, path)) {
		if (!quiet)
			say_note("%s compiles kernels with nvcc, and there is none: install the "
				 "packages of PyTorch's version, such as "
				 "\"cuda-toolkit[nvcc,crt,nvvm,cccl]==13.0.2\"",
				 package);
		return false;
	}
	path[strlen(path) - strlen("/bin/nvcc")] = 0;
	return !preload_link(path);
}

void engine_settings_set(char *const *command, bool quiet)
{
	FOR_EACH (const struct setting, s, settings, sizeof(settings) / sizeof(settings[0])) {
		const char *value = s->value;
		char path[PATH_MAX];

		if (getenv(s->name) || !packages_have(command[0], s->package, path))
			continue;
		if (!value && find_compiler(command[0], s->package, quiet, path))
			value = path;
		if (!value)
			continue;
		setenv(s->name, value, 1);
		if (!quiet)
			say_note("%s=%s is set for %s on the simulated device: %s", s->name, value,
				 s->package, s->why);
	}
}
