/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about the process for reports: command, place, versions, and the environment variables that
 * name the job or change how memory is used. Runs on the one thread that writes the file. No
 * variable outside the table is recorded, because the environment is full of secrets.
 */
#include "facts.h"

#include "../base/config.h"
#include "../rings/live.h"
#include "../stacks/native.h"
#include "../base/file.h"
#include "../base/os.h"
#include "output.h"
#include "../stacks/python.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* A name that ends in '*' stands for all with that prefix. */
static const char *const environment[] = {
	"CUDA_VISIBLE_DEVICES",
	"CUDA_DEVICE_ORDER",
	"CUDA_LAUNCH_BLOCKING",
	"CUDA_MODULE_LOADING",
	"CUDA_DEVICE_MAX_CONNECTIONS",
	"CUDA_MPS_*",
	"PYTORCH_ALLOC_CONF",
	"PYTORCH_CUDA_ALLOC_CONF",
	"PYTORCH_HIP_ALLOC_CONF",
	"PYTORCH_NO_CUDA_MEMORY_CACHING",
	"PYTORCH_NVML_BASED_CUDA_CHECK",
	"CUBLAS_WORKSPACE_CONFIG",
	"CUBLASLT_WORKSPACE_SIZE",
	"NCCL_*",
	"TORCH_NCCL_*",
	"TORCHINDUCTOR_*",
	"TORCH_CUDNN_*",
	"RANK",
	"LOCAL_RANK",
	"GROUP_RANK",
	"WORLD_SIZE",
	"LOCAL_WORLD_SIZE",
	"MASTER_ADDR",
	"MASTER_PORT",
	"TORCHELASTIC_RUN_ID",
	"OMPI_COMM_WORLD_RANK",
	"PMI_RANK",
	"PMIX_RANK",
	"PMIX_NAMESPACE",
	"SLURM_PROCID",
	"SLURM_JOB_ID",
	"SLURM_JOB_NAME",
	"SLURM_ARRAY_TASK_ID",
	"SLURM_CLUSTER_NAME",
	"LSB_JOBID",
	"LSB_JOBNAME",
	"LSB_JOBINDEX",
	"PBS_JOBID",
	"PBS_JOBNAME",
	"PBS_ARRAY_INDEX",
	"PBS_ARRAYID",
	"RAY_JOB_ID",
	"POD_NAME",
	"POD_NAMESPACE",
	"JOB_COMPLETION_INDEX",
	"GITHUB_REPOSITORY",
	"GITHUB_WORKFLOW",
	"GITHUB_RUN_ID",
	"GITHUB_RUN_ATTEMPT",
	"CI_PROJECT_PATH",
	"CI_JOB_ID",
	"CI_JOB_NAME",
	"WANDB_PROJECT",
	"WANDB_RUN_ID",
	"MLFLOW_EXPERIMENT_ID",
	"MLFLOW_EXPERIMENT_NAME",
	"MLFLOW_RUN_ID",
	"USER",
	"OMP_NUM_THREADS",
	"PYTHONMALLOC",
	"SIMGPU_*",
	"GPUMEMTRACE_*",
	"LD_PRELOAD",
	"LD_LIBRARY_PATH",
};

static bool (*emit)(const struct gmt_def *d);
static char buffer[32 * 1024];
static const char *last_trouble = ""; /* the reason last emitted for missing Python stacks */

static void text_fact(const char *key, const char *value)
{
	facts_emit(emit, key, value, strlen(value));
}

static void number_fact(const char *key, long long value)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", value);
	text_fact(key, text);
}

/* Emits what was read into the buffer, if anything. */
static void buffer_fact(const char *key, ssize_t len)
{
	if (len > 0)
		facts_emit(emit, key, buffer, (size_t)len);
}

static bool is_listed(const char *name, size_t len)
{
	for (unsigned i = 0; i < sizeof(environment) / sizeof(environment[0]); i++) {
		size_t n = strcspn(environment[i], "*");

		if (!strncmp(name, environment[i], n) && (environment[i][n] || n == len))
			return true;
	}
	return false;
}

/* The environment as it is now (a launcher written in Python sets RANK after the start). */
static void environment_facts(void)
{
	for (char **e = environ; e && *e; e++) {
		const char *equal = strchr(*e, '=');
		char key[64];

		if (!equal || !is_listed(*e, (size_t)(equal - *e)))
			continue;
		snprintf(key, sizeof(key), "env.%.*s", (int)(equal - *e), *e);
		text_fact(key, equal + 1);
	}
}

static void start_fact(void)
{
	struct timespec real, boot;
	uint64_t ticks = file_process_start();

	if (!ticks)
		return;
	os_clock(CLOCK_REALTIME, &real);
	os_clock(CLOCK_BOOTTIME, &boot);
	number_fact(
		"start_unix_ns",
		(long long)(real.tv_sec - boot.tv_sec) * 1000000000 + real.tv_nsec - boot.tv_nsec +
			(long long)(ticks * (1000000000ull / (unsigned long)sysconf(_SC_CLK_TCK))));
}

static void system_facts(void)
{
	struct utsname u;

	if (uname(&u))
		return;
	text_fact("host", u.nodename);
	snprintf(buffer, sizeof(buffer), "%s %s %s", u.sysname, u.release, u.machine);
	text_fact("kernel", buffer);
	number_fact("cpus", sysconf(_SC_NPROCESSORS_ONLN));
}

static void yes_or_reason(const char *key, const char *trouble)
{
	snprintf(buffer, sizeof(buffer), trouble ? "no: %s" : "yes", trouble);
	text_fact(key, buffer);
}

void meta_emit(bool (*to)(const struct gmt_def *d))
{
	emit = to;
	buffer_fact("argv", file_text("/proc/self/cmdline", buffer, sizeof(buffer)));
	buffer_fact("exe", readlink("/proc/self/exe", buffer, sizeof(buffer)));
	buffer_fact("cwd", readlink("/proc/self/cwd", buffer, sizeof(buffer)));
	number_fact("pid", getpid());
	number_fact("ppid", getppid());
	start_fact();
	system_facts();
	text_fact("output", output_get()->path);
	yes_or_reason("live_file",
		      live_is_shared() ? NULL : "this file system cannot share mappings");
	yes_or_reason("native_stacks", native_trouble());
	if (gmt_config.misread[0])
		text_fact("setting_not_understood", gmt_config.misread);
	environment_facts();
}

void meta_emit_python(bool (*to)(const struct gmt_def *d))
{
	const char *trouble = gmt_config.stacks & GMT_STACKS_PYTHON
				      ? python_trouble()
				      : "Python stacks are switched off";

	if (trouble == last_trouble)
		return;
	last_trouble = trouble;
	emit = to;
	yes_or_reason("python_stacks", trouble);
	if (python_version())
		text_fact("python.version", python_version());
}

void meta_forget(void)
{
	last_trouble = "";
}
