/* SPDX-License-Identifier: Apache-2.0 */
#include "ranks_look.h"

#include "../../format/rank.h"
#include "../../format/record.h"
#include "../base/human.h"
#include "../recording/defs.h"
#include "../recording/import.h"
#include "../recording/owner_words.h"

#define KEY(name) "env." name,
static const char *const rank_keys[] = { GMT_RANK_NAMES(KEY) };
#undef KEY
#define RANK_KEYS (sizeof(rank_keys) / sizeof(rank_keys[0]))

static int keep_meta(void *ctx, const struct gmt_def *d)
{
	return d->kind == GMT_DEF_META ? defs_add(ctx, d) : 0;
}

static long number_fact(const struct defs *d, const char *key, long otherwise)
{
	struct defs_text t = defs_meta(d, key);
	char *end;
	long n;

	if (!t.len)
		return otherwise;
	n = strtol(t.s, &end, 10);
	return *end || n < 0 || n > INT_MAX ? otherwise : n;
}

static void find_rank(struct rank_file *f, const struct defs *d)
{
	f->rank = -1;
	for (size_t i = 0; i < RANK_KEYS && f->rank < 0; i++) {
		f->rank = number_fact(d, rank_keys[i], -1);
		f->by_script = !i;
	}
}

/* Facts that identify a job. A local address identifies it on its host only. */
static const struct {
	const char *key;
	bool of_launch; /* it identifies a launch on all its hosts */
} job_facts[JOB_FACTS] = {
	[JOB_WORLD_SIZE] = { "env.WORLD_SIZE", false },
	[JOB_MASTER_ADDR] = { "env.MASTER_ADDR", true },
	[JOB_MASTER_PORT] = { "env.MASTER_PORT", false },
	[JOB_SLURM_JOB_ID] = { "env.SLURM_JOB_ID", true },
	[JOB_TORCHELASTIC_RUN_ID] = { "env.TORCHELASTIC_RUN_ID", false },
	[JOB_PMIX_NAMESPACE] = { "env.PMIX_NAMESPACE", true },
};

bool ranks_is_local(const char *address)
{
	return !strcmp(address, "localhost") || !strncmp(address, "127.", 4);
}

static void find_job(struct rank_file *f, const struct defs *d)
{
	char words[768] = "";

	f->job_is_local = true;
	for (size_t i = 0; i < JOB_FACTS; i++) {
		const char *s = defs_meta(d, job_facts[i].key).s;

		f->facts[i] = need_text(s);
		text_add(words, sizeof(words), "%.100s ", s);
		if (job_facts[i].of_launch && *s && !ranks_is_local(s))
			f->job_is_local = false;
	}
	f->job = need_text(words);
}

/* The job of a rank that was simulated alone: all facts except the port, which belongs to its
 * simulated peers. NULL for other ranks. The caller frees it. */
static char *world_words(const struct rank_file *f, const struct defs *d)
{
	struct defs_text alone = defs_meta(d, "env.SIMGPU_RANKS");
	size_t len;
	char *words = NULL;
	FILE *out;

	if (!defs_meta(d, "env.SIMGPU_CARD").len ||
	    (strcmp(alone.s, "alone") && f->world <= number_fact(d, "env.SIMGPU_COUNT", 1)))
		return NULL;
	out = need_stream(&words, &len);
	for (size_t i = 0; i < JOB_FACTS; i++)
		fprintf(out, "%s ", i == JOB_MASTER_PORT ? "" : f->facts[i]);
	fprintf(out, "%s %s", defs_meta(d, "env.SIMGPU_WORLD").s, f->command);
	fclose(out);
	return words;
}

static void facts(struct rank_file *f, const struct defs *d)
{
	struct defs_text start = defs_meta(d, "start_unix_ns");
	struct defs_text remote = defs_meta(d, "git.remote"), cwd = defs_meta(d, "cwd");
	struct defs_text root = remote.len ? remote : defs_meta(d, "git.root");
	char command[1024];

	find_rank(f, d);
	f->world = number_fact(d, "env.WORLD_SIZE", 0);
	f->parent = (uint32_t)number_fact(d, "ppid", 0);
	snprintf(f->host, sizeof(f->host), "%.60s", defs_meta(d, "host").s);
	f->start_ns = start.len ? strtoll(start.s, NULL, 10) : f->start_ns;
	find_job(f, d);
	command_words(d, command, sizeof(command));
	f->command = need_text(command);
	f->world_job = world_words(f, d);
	root = root.len ? root : cwd;
	f->folder = need_copy(root.s, root.len);
}

void ranks_name(struct rank_file *f)
{
	if (f->rank >= 0)
		snprintf(f->name, sizeof(f->name), "rank %ld", f->rank);
	else if (f->pid)
		snprintf(f->name, sizeof(f->name), "process %u", f->pid);
	else
		snprintf(f->name, sizeof(f->name), "%.31s", owners_base(f->path));
}

/* "oom_rank-3_x.pickle" */
static long rank_in_name(const char *file)
{
	const char *at = strstr(file, "rank");

	at = at ? at + 4 : file;
	if (at > file && strchr("-_", *at) && *at)
		at++;
	return at > file && isdigit((unsigned char)*at) ? strtol(at, NULL, 10) : -1;
}

/* A snapshot does not store its rank, but trainers put it into the name of the file or folder. */
static long rank_in_path(const char *path)
{
	const char *base = owners_base(path), *folder = base;
	long rank = rank_in_name(base);

	for (folder -= base > path; folder > path && folder[-1] != '/'; folder--)
		;
	return rank < 0 ? rank_in_name(folder) : rank;
}

void ranks_look(struct rank_file *f, char *path)
{
	struct gmt_reader *reader;
	struct defs defs = { 0 };
	int err;

	*f = (struct rank_file){ .path = path, .rank = -1 };
	reader = gmt_reader_open(path, &err);
	f->readable = reader || import_recognises(path);
	if (reader) {
		f->pid = gmt_reader_info(reader)->pid;
		if (gmt_reader_info(reader)->first_ns) /* 0: cut before its first event */
			f->start_ns = (int64_t)gmt_reader_info(reader)->first_ns +
				      gmt_reader_info(reader)->realtime_minus_monotonic_ns;
		defs_read(reader, keep_meta, &defs);
		facts(f, &defs);
		defs_free(&defs);
		f->a_part = gmt_reader_info(reader)->truncated; /* as far as it was read */
		gmt_reader_close(reader);
	} else {
		f->rank = rank_in_path(path);
	}
	for (size_t i = 0; i < JOB_FACTS; i++)
		f->facts[i] = f->facts[i] ? f->facts[i] : need_text("");
	f->job = f->job ? f->job : need_text("");
	f->command = f->command ? f->command : need_text("");
	f->folder = f->folder ? f->folder : need_text("");
	ranks_name(f);
}

void ranks_look_free(struct rank_file *f)
{
	for (size_t i = 0; i < JOB_FACTS; i++)
		free(f->facts[i]);
	free(f->path);
	free(f->job);
	free(f->world_job);
	free(f->command);
	free(f->folder);
}

/* ---- of different runs ---- */

/* Recordings are of different runs if they differ in a fact that a run has once. If a launcher gave
 * both the same facts, their commands and hosts may differ; if not, a run is one program. A fact
 * that one of them lacks is no difference. */

static bool other_fact(const struct rank_file *a, const struct rank_file *b, size_t fact, char *why,
		       size_t room)
{
	const char *x = a->facts[fact], *y = b->facts[fact];

	if (!*x || !*y || !strcmp(x, y))
		return false;
	/* A local address and another one may be the same host. */
	if (fact == JOB_MASTER_ADDR && (ranks_is_local(x) || ranks_is_local(y)))
		return false;
	/* Each has simulated peers of its own, with their port. */
	if (fact == JOB_MASTER_PORT && a->by_itself && b->by_itself)
		return false;
	snprintf(why, room, "%s is %.80s in %.200s and %.80s in %.200s",
		 job_facts[fact].key + strlen("env."), x, a->path, y, b->path);
	return true;
}

/* Whether both used a local address, on different hosts. */
static bool other_host(const struct rank_file *a, const struct rank_file *b, char *why, size_t room)
{
	if (!a->job_is_local || !b->job_is_local || !a->host[0] || !b->host[0] ||
	    !strcmp(a->host, b->host) || (a->by_itself && b->by_itself) ||
	    !ranks_is_local(a->facts[JOB_MASTER_ADDR]) ||
	    !ranks_is_local(b->facts[JOB_MASTER_ADDR]))
		return false;
	snprintf(why, room,
		 "MASTER_ADDR is the host itself, which is %s of %.200s and %s of %.200s", a->host,
		 a->path, b->host, b->path);
	return true;
}

static bool started(const struct rank_file *a, const struct rank_file *b)
{
	return a->pid && b->parent == a->pid && !strcmp(a->host, b->host);
}

/* Nanoseconds between the starts. Unsigned, so that wrong clocks cannot make it overflow. */
static uint64_t between(const struct rank_file *a, const struct rank_file *b)
{
	bool later = a->start_ns > b->start_ns;

	return later ? (uint64_t)a->start_ns - (uint64_t)b->start_ns
		     : (uint64_t)b->start_ns - (uint64_t)a->start_ns;
}

bool ranks_began_apart(const struct rank_file *a, const struct rank_file *b)
{
	return between(a, b) >= RANKS_LONGEST_START && !(a->by_itself && b->by_itself);
}

/* Ranks begin together, because they wait for each other. A process starts others at any time. */
static bool other_time(const struct rank_file *a, const struct rank_file *b, char *why, size_t room)
{
	if (!a->start_ns || !b->start_ns || started(a, b) || started(b, a) ||
	    !ranks_began_apart(a, b))
		return false;
	snprintf(why, room, "%.200s began %s after %.200s",
		 a->start_ns > b->start_ns ? a->path : b->path, SECONDS(between(a, b)),
		 a->start_ns > b->start_ns ? b->path : a->path);
	return true;
}

/* Whether a launcher gave both the same fact. WORLD_SIZE does not count, as many runs have the
 * same, and a Slurm job only for ranks, as all programs of a batch script have it. */
static bool share_fact(const struct rank_file *a, const struct rank_file *b)
{
	for (size_t i = 0; i < JOB_FACTS; i++) {
		bool tells =
			i == JOB_SLURM_JOB_ID ? a->rank >= 0 && b->rank >= 0 : i != JOB_WORLD_SIZE;

		if (tells && *a->facts[i] && !strcmp(a->facts[i], b->facts[i]))
			return true;
	}
	return false;
}

/* Length of the words of a command that identify its program: up to the script or module, because
 * processes of one program may have different arguments; for `-c` up to the first number, which
 * differs in multiprocessing's children. */
static size_t program_words(const char *command)
{
	const char *at = command;

	for (;;) {
		size_t len = strcspn(at, " ");
		bool module = len == 2 && !memcmp(at, "-m", 2);

		if (len == 2 && !memcmp(at, "-c", 2))
			return (size_t)(at - command) + strcspn(at, "0123456789");
		if (len > 3 && !memcmp(at + len - 3, ".py", 3))
			return (size_t)(at - command) + len;
		if (!at[len])
			return strcspn(command, " ");
		at += len + 1;
		if (module)
			return (size_t)(at - command) + strcspn(at, " ");
	}
}

static bool other_program(const struct rank_file *a, const struct rank_file *b, char *why,
			  size_t room)
{
	size_t x = program_words(a->command), y = program_words(b->command);

	if (!x || !y || share_fact(a, b) || started(a, b) || started(b, a) ||
	    (x == y && !memcmp(a->command, b->command, x)))
		return false;
	snprintf(why, room, "%.200s is of %.80s and %.200s of %.80s", a->path, a->command, b->path,
		 b->command);
	return true;
}

bool ranks_differ(const struct rank_file *a, const struct rank_file *b, char *why, size_t room)
{
	for (size_t i = 0; i < JOB_FACTS; i++)
		if (other_fact(a, b, i, why, room))
			return true;
	return other_host(a, b, why, room) || other_time(a, b, why, room) ||
	       other_program(a, b, why, room);
}
