/* SPDX-License-Identifier: Apache-2.0 */
#include "parts.h"

#include "../../format/record.h"
#include "../base/human.h"
#include "../moments/timeline.h"
#include "../moments/moments.h"

/* Each fact with its keys, of which the first that a recording has counts. */
static const struct {
	const char *name, *keys[10];
} run_facts[RUN_FACTS] = {
	{ "user", { "env.USER" } },
	{ "host", { "host" } },
	{ "job",
	  { "env.SLURM_JOB_ID", "env.LSB_JOBID", "env.PBS_JOBID", "env.RAY_JOB_ID", "env.CI_JOB_ID",
	    "env.GITHUB_RUN_ID" } },
	{ "job_name",
	  { "env.SLURM_JOB_NAME", "env.LSB_JOBNAME", "env.PBS_JOBNAME", "env.CI_JOB_NAME",
	    "env.GITHUB_WORKFLOW", "env.POD_NAME" } },
	{ "job_task",
	  { "env.SLURM_ARRAY_TASK_ID", "env.LSB_JOBINDEX", "env.PBS_ARRAY_INDEX", "env.PBS_ARRAYID",
	    "env.JOB_COMPLETION_INDEX", "env.GITHUB_RUN_ATTEMPT" } },
	{ "namespace",
	  { "env.POD_NAMESPACE", "env.SLURM_CLUSTER_NAME", "env.GITHUB_REPOSITORY",
	    "env.CI_PROJECT_PATH" } },
	{ "experiment",
	  { "env.WANDB_PROJECT", "env.MLFLOW_EXPERIMENT_NAME", "env.MLFLOW_EXPERIMENT_ID" } },
	{ "experiment_run", { "env.WANDB_RUN_ID", "env.MLFLOW_RUN_ID" } },
	{ "labels", { "env.GPUMEMTRACE_LABELS" } },
	{ "git_commit", { "git.commit" } },
	{ "git_branch", { "git.branch" } },
	{ "repository", { "git.remote" } },
	{ "pid", { "pid" } },
	{ "world", { "env.WORLD_SIZE" } },
	{ "torch", { "torch.version" } },
	{ "cuda", { "torch.cuda" } },
	{ "python", { "python.version" } },
	{ "alloc_conf",
	  { "env.PYTORCH_ALLOC_CONF", "env.PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF" } },
};

bool run_fact_row(void *defs, size_t i, struct row_fact *row)
{
	*row = (struct row_fact){ .name = run_facts[i].name };
	for (const char *const *key = run_facts[i].keys; *key && !row->value.len; key++)
		row->value = defs_meta(defs, *key);
	return row->value.len;
}

struct claim claim_of(const struct claim *table, size_t count, const char *kind)
{
	const struct claim *c = FIRST_OF(x, table, count, !strcmp(x->kind, kind));

	return c ? *c : (struct claim){ .kind = kind };
}

void claim_say(const struct claim *c, char *text, size_t room)
{
	if (100ull * c->right < 99ull * c->of)
		text_add(text, room, "; measured right in %u of %u", c->right, c->of);
}

struct defs_text device_fact(const struct defs *d, int device, const char *what)
{
	char key[64];

	snprintf(key, sizeof(key), "device.%d.%s", device, what);
	return defs_meta(d, key);
}

bool device_is_simulated(const struct defs *d, int device)
{
	static const char begin[] = "73696d75-6c61-"; /* a simulated one's UUID: "simula" */

	return !strncmp(device_fact(d, device, "uuid").s, begin, sizeof(begin) - 1);
}

const char *device_card(const struct defs *d, int device, char *buf, size_t room)
{
	struct defs_text card = defs_meta(d, "env.SIMGPU_CARD");

	snprintf(buf, room, "%.50s",
		 card.len && device_is_simulated(d, device) ? card.s
							    : device_fact(d, device, "name").s);
	return buf;
}

const char *device_words(const struct defs *d, int device, char *buf, size_t room)
{
	char card[64];

	snprintf(buf, room, "%s%s", device_is_simulated(d, device) ? "simulated " : "",
		 device_card(d, device, card, sizeof(card)));
	return buf;
}

size_t classes_by_bytes(const uint64_t bytes[CATEGORIES], unsigned order[CATEGORIES])
{
	size_t n = 0, at;

	for (unsigned c = 0; c < CATEGORIES; c++) {
		if (!bytes[c])
			continue;
		for (at = n++; at && bytes[order[at - 1]] < bytes[c]; at--)
			order[at] = order[at - 1];
		order[at] = c;
	}
	return n;
}

struct owner asking_line(struct owners *owners, const struct gmt_event *e)
{
	const struct block b = { .stack = e->stack,
				 .seq = e->seq,
				 .name = e->kind == GMT_BLOCK_ALLOC ? e->name : 0,
				 .memory = e->kind == GMT_BLOCK_ALLOC ? 0 : GMT_MEM_DEVICE };

	return owners_find(owners, &b);
}

void emit_figure(struct emit *out, int width, const char *what, uint64_t bytes, const char *note,
		 ...)
{
	char text[OWNER_WORDS + 64] = "";
	va_list args;

	va_start(args, note);
	if (note)
		vsnprintf(text, sizeof(text), note, args);
	va_end(args);
	emit_line(out, "  %-*s%10s  %s", width, what, B(bytes), text);
}

const char *peak_title(const struct peak_words *p, char *buf, size_t room)
{
	char of[HUMAN_MAX + 8] = "", when[MOMENTS_WHEN];

	if (p->total_bytes)
		snprintf(of, sizeof(of), " of %s", B(p->total_bytes));
	snprintf(buf, room, "Device %d: %s%s%s%s", p->device,
		 moments_state_only(p->model) ? "" : "peak ", B(p->bytes), of,
		 moments_when(p->model, p->seq, p->time_ns, when, sizeof(when)));
	return buf;
}

void emit_peak_title(struct emit *out, const struct peak_words *p)
{
	char line[INSTANT_MAX + 8];

	emit_title(out, "%s", peak_title(p, line, sizeof(line)));
	if (p->at && p->at->text[0] && p->seq > p->model->state_seq)
		emit_title(out, "%s", instant_line(p->at, line, sizeof(line)));
}
