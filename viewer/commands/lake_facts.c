/* SPDX-License-Identifier: Apache-2.0 */
/* The row of a recording: who, where, what, and how it went. */
#include "../../format/version.h"
#include "../answers/leaks.h"
#include "../answers/parts.h"
#include "../moments/room.h"
#include "../recording/running.h"
#include "lake.h"

/*
 * A command without what names one run of it ("--run-name exp-17", "output_dir=out/3"), so that
 * runs can be compared. The names of options decide, by their parts.
 */

/* An option with such a part names the run, unless it is about something else. */
#define NAMING                                                                         \
	" run exp experiment output out outdir log logs logdir logging save seed tag " \
	"tags note notes wandb mlflow job trial session comment results "
#define ABOUT                                                                            \
	" model data dataset config tokenizer optimizer steps step every interval freq " \
	"epochs "

static bool is_in(const char *words, const char *word, size_t len)
{
	char key[24];

	if (!len || len + 3 > sizeof(key))
		return false;
	snprintf(key, sizeof(key), " %.*s ", (int)len, word);
	return strcasestr(words, key);
}

/* An option of the command: "--run-name", "run.dir=x". */
static bool names_a_run(const char *word, size_t len)
{
	size_t dashes = strspn(word, "-"), end = strcspn(word, "= ");
	bool found = is_in(" name id o ", word + dashes, end - dashes);

	if ((!dashes && end == len) || dashes > 2)
		return false;
	for (size_t i = dashes, n; i < end; i += n + 1) {
		for (n = 0; i + n < end && isalnum((unsigned char)word[i + n]); n++)
			;
		if (is_in(ABOUT, word + i, n))
			return false;
		found |= is_in(NAMING, word + i, n);
	}
	return found;
}

void lake_program(char *command)
{
	char *to = command;
	bool option = false; /* the word before names a run: this one may be its value */

	for (char *p = command; *p;) {
		size_t len = strcspn(p, " "), whole = len + (p[len] == ' ');
		bool value = option && *p != '-';

		option = !value && names_a_run(p, len);
		if (!value && !option) {
			memmove(to, p, whole);
			to += whole;
		}
		option &= !memchr(p, '=', len);
		p += whole;
	}
	while (to > command && to[-1] == ' ')
		to--;
	*to = 0;
}

const char *lake_module(struct lake_rows *x, uint32_t stack)
{
	x->module[0] = 0;
	if (!stack)
		return x->module;
	stacks_read_python(&x->timeline->stacks, stack);
	return owners_module_path(&x->timeline->stacks, false, x->module, sizeof(x->module));
}

/* Columns that are what was recorded of the process; the first key that it has. Those that say
 * whose run it is come first: LAKE_IDENTITY of them. */
static const struct fact {
	unsigned column;
	const char *keys[10];
} facts[] = {
	{ LAKE_ranks_user, { "env.USER" } },
	{ LAKE_ranks_host, { "host" } },
	{ LAKE_ranks_job,
	  { "env.SLURM_JOB_ID", "env.LSB_JOBID", "env.PBS_JOBID", "env.RAY_JOB_ID", "env.CI_JOB_ID",
	    "env.GITHUB_RUN_ID" } },
	{ LAKE_ranks_job_name,
	  { "env.SLURM_JOB_NAME", "env.LSB_JOBNAME", "env.PBS_JOBNAME", "env.CI_JOB_NAME",
	    "env.GITHUB_WORKFLOW", "env.POD_NAME" } },
	{ LAKE_ranks_job_task,
	  { "env.SLURM_ARRAY_TASK_ID", "env.LSB_JOBINDEX", "env.PBS_ARRAY_INDEX", "env.PBS_ARRAYID",
	    "env.JOB_COMPLETION_INDEX", "env.GITHUB_RUN_ATTEMPT" } },
	{ LAKE_ranks_namespace,
	  { "env.POD_NAMESPACE", "env.SLURM_CLUSTER_NAME", "env.GITHUB_REPOSITORY",
	    "env.CI_PROJECT_PATH" } },
	{ LAKE_ranks_experiment,
	  { "env.WANDB_PROJECT", "env.MLFLOW_EXPERIMENT_NAME", "env.MLFLOW_EXPERIMENT_ID" } },
	{ LAKE_ranks_experiment_run, { "env.WANDB_RUN_ID", "env.MLFLOW_RUN_ID" } },
	{ LAKE_ranks_labels, { "env.GPUMEMTRACE_LABELS" } },
	{ LAKE_ranks_git_commit, { "git.commit" } },
	{ LAKE_ranks_git_branch, { "git.branch" } },
	{ LAKE_ranks_repository, { "git.remote" } },
	{ LAKE_ranks_pid, { "pid" } },
	{ LAKE_ranks_world, { "env.WORLD_SIZE" } },
	{ LAKE_ranks_torch, { "torch.version" } },
	{ LAKE_ranks_cuda, { "torch.cuda" } },
	{ LAKE_ranks_python, { "python.version" } },
	{ LAKE_ranks_alloc_conf,
	  { "env.PYTORCH_ALLOC_CONF", "env.PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF" } },
};

static struct defs_text fact_value(const struct defs *d, const struct fact *f)
{
	struct defs_text v = { 0 };

	for (size_t k = 0; f->keys[k] && !v.len; k++)
		v = defs_meta(d, f->keys[k]);
	return v;
}

struct defs_text lake_identity(const struct defs *d, size_t i, const char **name)
{
	*name = lake_tables[LAKE_ranks].columns[facts[i].column].name;
	return fact_value(d, &facts[i]);
}

static void fact_cells(struct lake_rows *x)
{
	FOR_EACH (const struct fact, f, facts, sizeof(facts) / sizeof(facts[0])) {
		struct defs_text v = fact_value(&x->recording->defs, f);

		if (!v.len)
			continue;
		if (f->column == LAKE_ranks_pid || f->column == LAKE_ranks_world)
			lake_int(x->w, LAKE_ranks, f->column, strtoll(v.s, NULL, 10));
		else
			lake_bytes(x->w, LAKE_ranks, f->column, v.s, v.len);
	}
}

/* The first value of that name in "model=llama-8b,batch=16". */
static void label_cell(struct lake_rows *x, const char *name, unsigned column)
{
	const char *p = defs_meta(&x->recording->defs, "env.GPUMEMTRACE_LABELS").s;
	size_t n = strlen(name);

	for (; *p; p += strcspn(p, ","), p += *p == ',') {
		p += strspn(p, " ");
		if (strncmp(p, name, n) || p[n] != '=')
			continue;
		lake_bytes(x->w, LAKE_ranks, column, p + n + 1, strcspn(p + n + 1, ","));
		return;
	}
}

static void process_cells(struct lake_rows *x)
{
	const struct recording *r = x->recording;
	const struct model *m = &x->timeline->model;
	struct defs_text start = defs_meta(&r->defs, "start_unix_ns");
	int64_t started = start.len ? strtoll(start.s, NULL, 10)
				    : (int64_t)m->first_ns + r->info->realtime_minus_monotonic_ns;
	char command[4096];

	put_text(x->w, ranks, recording, r->path);
	if (start.len || r->info->realtime_minus_monotonic_ns)
		put_int(x->w, ranks, started, started / 1000);
	put_int(x->w, ranks, duration_ns, m->last_ns - m->first_ns);
	put_text(x->w, ranks, command, command_words(&r->defs, command, sizeof(command)));
	lake_program(command);
	put_text(x->w, ranks, program, command);
	label_cell(x, "model", LAKE_ranks_model);
	label_cell(x, "batch", LAKE_ranks_batch);
	put_text(x->w, ranks, end_state,
		 x->out_of_memory ? "out_of_memory"
		 : m->ended	  ? "ended"
				  : "unknown");
	put_int(x->w, ranks, events, m->events);
	put_int(x->w, ranks, dropped, m->dropped);
	put_flag(x->w, ranks, truncated, r->info->truncated);
	put_flag(x->w, ranks, damaged, recording_state(r) == STATE_DAMAGED);
	put_int(x->w, ranks, recording_bytes, r->file_bytes);
	put_int(x->w, ranks, refusals, x->refusals);
	put_text(x->w, ranks, tool, GMT_TOOL_VERSION);
}

static void growth_rows(struct lake_rows *x)
{
	struct leaks leaks = { 0 };

	leaks_find(&leaks, x->timeline);
	if (leaks.from_step != leaks.to_step)
		put_int(x->w, ranks, growth_bytes, leaks.bytes_per_step);
	FOR_EACH (const struct leak, l, leaks.items, leaks.count) {
		put_text(x->w, growth, class, categories[l->category].name);
		put_owner(x->w, growth, &l->owner, lake_module(x, l->blocks ? l->latest.stack : 0));
		put_int(x->w, growth, bytes_per_step, l->bytes_per_step);
		put_int(x->w, growth, bytes, l->bytes);
		put_int(x->w, growth, blocks, l->blocks);
		put_int(x->w, growth, from_step, leaks.from_step);
		put_int(x->w, growth, to_step, leaks.to_step);
		lake_row(x->w, LAKE_growth);
	}
	leaks_free(&leaks);
}

static uint64_t used_on(const struct model_device *d)
{
	return d->driver.peak.bytes ? d->driver.peak.bytes + d->context : model_peak_reserved(d);
}

static void device_cells(struct lake_rows *x, const struct peak_answer *peak)
{
	const struct timeline *t = x->timeline;
	const struct model_device *d = &t->model.devices[t->device];
	const struct moment *mo = &peak->shot.moment;
	char card[100];

	put_int(x->w, ranks, device, t->device);
	put_text(x->w, ranks, card,
		 device_card(&x->recording->defs, t->device, card, sizeof(card)));
	put_flag(x->w, ranks, simulated, device_is_simulated(&x->recording->defs, t->device));
	put_known(x->w, ranks, total_bytes, d->total_bytes);
	put_int(x->w, ranks, peak_bytes, mo->bytes);
	put_int(x->w, ranks, peak_time_ns, mo->time_ns);
	put_int(x->w, ranks, peak_step, peak->instant.step);
	put_text(x->w, ranks, peak_phase, phases[peak->instant.phase].name);
	put_text(x->w, ranks, peak_at, peak->instant.text);
	put_int(x->w, ranks, peak_reserved_bytes, model_peak_reserved(d));
	put_int(x->w, ranks, reserved_at_peak_bytes, mo->reserved);
	put_int(x->w, ranks, largest_hole_bytes, room_at(&t->model, mo, NULL).hole);
	put_int(x->w, ranks, used_bytes, used_on(d));
	put_int(x->w, ranks, end_bytes, model_curve(d)->now);
	put_int(x->w, ranks, allocs, model_allocs(d));
	put_int(x->w, ranks, frees, model_frees(d));
	put_int(x->w, ranks, retries, d->retries);
	put_int(x->w, ranks, steps, steps_number(&t->steps));
	put_text(x->w, ranks, step_basis, steps_bases[t->steps.basis].name);
	growth_rows(x);
}

void lake_rank_row(struct lake_rows *x, struct peak_answer *peak)
{
	unsigned devices = 0;

	for (int i = 0; i < MODEL_DEVICES; i++)
		devices += model_has_memory(&x->timeline->model.devices[i]);
	fact_cells(x);
	process_cells(x);
	put_int(x->w, ranks, devices, devices);
	if (x->timeline->device >= 0)
		device_cells(x, peak);
	lake_row(x->w, LAKE_ranks);
}

/* ---- each device ---- */

static void class_rows(struct lake_rows *x, const struct snapshot *s)
{
	for (unsigned c = 0; c < CATEGORIES; c++) {
		if (!s->blocks[c])
			continue;
		put_int(x->w, classes, device, s->moment.device);
		put_text(x->w, classes, class, categories[c].name);
		put_int(x->w, classes, bytes, s->bytes[c]);
		put_int(x->w, classes, blocks, s->blocks[c]);
		lake_row(x->w, LAKE_classes);
	}
}

static void device_row(struct lake_rows *x, int device)
{
	const struct model_device *d = &x->timeline->model.devices[device];
	const struct curve *c = model_curve(d);
	char card[100];

	put_int(x->w, devices, device, device);
	put_text(x->w, devices, card, device_card(&x->recording->defs, device, card, sizeof(card)));
	put_known(x->w, devices, total_bytes, d->total_bytes);
	put_int(x->w, devices, peak_bytes, c->peak.bytes);
	put_int(x->w, devices, peak_time_ns, c->peak.event.time_ns);
	put_int(x->w, devices, peak_reserved_bytes, model_peak_reserved(d));
	put_int(x->w, devices, used_bytes, used_on(d));
	put_int(x->w, devices, end_bytes, c->now);
	put_int(x->w, devices, refusals, model_ooms(d));
	lake_row(x->w, LAKE_devices);
}

void lake_device_rows(struct lake_rows *x)
{
	struct timeline *t = x->timeline;
	struct snapshot s;

	for (int i = 0; i < MODEL_DEVICES; i++) {
		if (!model_has_memory(&t->model.devices[i]))
			continue;
		x->refusals += model_ooms(&t->model.devices[i]);
		device_row(x, i);
		timeline_look(t, i);
		snapshot_take(&s, t, model_curve(&t->model.devices[i])->peak.event.seq);
		class_rows(x, &s);
		moment_free(&s.moment);
	}
}
