/* SPDX-License-Identifier: Apache-2.0 */
/* run: starts a program with the recording library preloaded, on a simulated device if wanted. */
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../../format/environment.h"
#include "../../format/record.h"
#include "../answers/values.h"
#include "../ask/command.h"
#include "../base/outfile.h"
#include "../base/plain_file.h"
#include "../base/shell.h"
#include "../oom/oom_ranks.h"
#include "../oom/summary.h"
#include "../recording/recording.h"
#include "run_changes.h"
#include "run_program.h"

/*
 * Notices from the simulated device about the program that ran on it. The device writes them to a
 * file that we name in its environment (simgpu/README.md).
 */

#define INSIDE                                                                \
	"has NVIDIA's own CUDA runtime inside, which needs NVIDIA's driver: " \
	"it found no GPU on the simulated device"

static char notes_path[256];

/* All processes of the program share the simulated cards. The file in which they count what they
 * hold has no name, so nothing is left behind. */
static void share_cards(void)
{
	char name[64];
	int fd = getenv("SIMGPU_USAGE") ? -1 : memfd_create("gpumemtrace-cards", MFD_CLOEXEC);

	if (fd < 0)
		return;
	snprintf(name, sizeof(name), "/proc/%d/fd/%d", getpid(), fd);
	setenv("SIMGPU_USAGE", name, 1);
}

static void open_notes(void)
{
	const char *folder = getenv("TMPDIR");
	int fd;

	snprintf(notes_path, sizeof(notes_path), "%s/gpumemtrace-notes-XXXXXX",
		 folder && *folder && strlen(folder) < 200 ? folder : "/tmp");
	fd = mkstemp(notes_path);
	if (fd < 0) {
		notes_path[0] = 0;
		return;
	}
	close(fd);
	setenv("SIMGPU_NOTES", notes_path, 1);
}

/* Copies the rest of the first notice that begins with the word; "" if there is none. */
static bool simnotes_find(const char *word, char rest[PATH_MAX])
{
	FILE *f = notes_path[0] ? fopen(notes_path, "r") : NULL;
	char line[PATH_MAX];

	rest[0] = 0;
	while (f && !rest[0] && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, word, strlen(word)))
			strcpy(rest, line + strlen(word));
	}
	if (f)
		fclose(f);
	return rest[0];
}

/* Call after the program's end and after run_result_find. */
static void simnotes_close(struct run_result *r)
{
	simnotes_find("runtime ", r->runtime);
	if (notes_path[0])
		unlink(notes_path);
	/* Replaces the misleading "it allocated no memory": the device did not run this program. */
	if (r->runtime[0] && !r->files)
		snprintf(r->why, sizeof(r->why), "%s " INSIDE, r->runtime);
}

/* Whether a program that failed had run out of memory. */

struct run_end {
	char text[SUMMARY_TEXT + 64]; /* why memory ran out; "": unknown */
	char file[SHELL_WORD];	      /* operand for `oom`, quoted */
};

static bool explain_end(struct run_end *e, const char *before, struct timeline *t, const char *path)
{
	struct summary s = { 0 };
	bool found = summary_find_end(&s, t, path);

	if (found)
		snprintf(e->text, sizeof(e->text), "%s%s%s", before, *before ? ": " : "",
			 s.items[0].text);
	summary_free(&s);
	return found;
}

static bool look_at_end(struct run_end *e, const char *before, const char *path)
{
	struct recording r;
	struct timeline t;
	bool found = false;

	if (recording_open(&r, path))
		return false;
	if (!timeline_open_any(&t, &r)) {
		found = explain_end(e, before, &t, path);
		timeline_close(&t);
	}
	recording_close(&r);
	return found;
}

/* Reads recordings only if the program failed and an allocation was refused. Explains the first
 * process that ran out of memory and did not go on. */
static void run_end_find(struct run_end *e, const struct run_result *f, int code)
{
	const char *folder = run_ranks_folder(&f->ranks);
	struct oom_ranks all;
	bool alone = f->files == 1, found = false;

	e->text[0] = 0;
	if (!code || !f->refused || !f->files || oom_ranks_find(&all, f->paths, 0))
		return;
	for (size_t i = 0; i < all.count && (all.items[i].failed || alone) && !found; i++) {
		shell_word(folder ? folder : all.items[i].file.path, e->file);
		found = look_at_end(e, alone ? "" : all.items[i].file.name, all.items[i].file.path);
	}
	oom_ranks_free(&all);
}

#define OUTPUT "GPUMEMTRACE_OUTPUT"

/* "CARD" or "CARD,N". */
static int set_card(const char *sim)
{
	const char *comma = strrchr(sim, ',');
	char card[256], *end;
	long count = 1;

	if (comma) {
		count = strtol(comma + 1, &end, 10);
		if (*end || end == comma + 1 || count < 1 || count > 64)
			return say_usage(
				"--sim %s: the comma needs a number of devices behind it, 1 to 64",
				sim);
	}
	snprintf(card, sizeof(card), "%.*s", comma ? (int)(comma - sim) : (int)strlen(sim), sim);
	if (!card[0])
		return say_usage("--sim needs the name of a card, such as h100-80g");
	setenv("SIMGPU_CARD", card, 1);
	snprintf(card, sizeof(card), "%ld", count);
	setenv("SIMGPU_COUNT", card, 1);
	return 0;
}

/* Earlier recordings are replaced only if the name was given to this command itself, not by the
 * environment. */
static int set_output(const char *given, struct run_old *old)
{
	const char *own = given ? given : getenv(OUTPUT);
	char absolute[PATH_MAX];
	int rc = 0;

	if (given && (!*given || !strcmp(given, "-")))
		return outfile_check("-");
	rc = run_output_absolute(own && *own ? own : RUN_OUTPUT, absolute);
	if (!rc && given)
		rc = run_output_find_old(absolute, old);
	if (!rc)
		setenv(OUTPUT, absolute, 1);
	return rc;
}

/* A program may take hours, so settings are checked before it starts. */
static int check_settings(void)
{
	static struct gmt_settings s;
	const char *time = getenv("SIMGPU_TIME");

	gmt_settings_read(&s);
	if (s.misread[0])
		return say_usage("%s; nothing was started", s.misread);
	if (time && *time && strcmp(time, "on") && strcmp(time, "off"))
		return say_usage("SIMGPU_TIME=%.40s is neither on nor off", time);
	return 0;
}

static int set_up(const struct run_options *o, struct run_old *old)
{
	int rc = o->sim ? set_card(o->sim) : 0;

	if (!rc)
		rc = preload_set(o->sim ? getenv("SIMGPU_CARD") : NULL);
	if (!rc)
		rc = set_output(o->output, old);
	if (rc)
		return rc;
	if (o->sim && !o->as_is)
		engine_settings_set(o->command, o->quiet);
	if (o->stacks)
		setenv("GPUMEMTRACE_STACKS", o->stacks, 1);
	if (o->quiet)
		setenv("GPUMEMTRACE_QUIET", "1", 1);
	return check_settings();
}

/* A failed program might have failed because it read values that are not computed. */
static void tell_failure(int code, const struct values *v)
{
	if (code && code < 126 && v->reads)
		say_note("the program failed with exit code %d. Before that it read %" PRIu64
			 " value%s that the simulated device does not compute: on a real card it "
			 "might succeed",
			 code, v->reads, v->reads == 1 ? "" : "s");
}

/* Texts in `values` point into the other members. Nothing is freed, because this process is about
 * to end. */
struct read_values {
	struct recording recording;
	struct reads reads;
	struct stacks stacks;
	struct owners owners;
	struct values values;
};

static int note_value(void *ctx, const struct gmt_event *e)
{
	struct read_values *r = ctx;

	if (e->kind == GMT_VALUE)
		reads_note(&r->reads, e);
	return 0;
}

/* Finds sizes that depend on values which a simulated device does not compute, so that the peak may
 * be too low. */
static void find_values(struct read_values *r, const char *path)
{
	if (recording_open(&r->recording, path) || recording_run(&r->recording, note_value, r))
		return;
	owners_open(&r->owners, &r->stacks, &r->recording.defs);
	values_find(&r->values, &r->reads, &r->owners);
}

static void emit_run(const struct run_result *f, int code, const struct values *values,
		     const struct run_end *end, struct run_changes *changes)
{
	struct emit *out = emit_open(stderr, true);
	struct row_run row = { .file = f->path,
			       .events = f->events,
			       .files = f->files,
			       .exit_code = code,
			       .has_why = !f->files,
			       .why = f->why,
			       .has_out_of_memory = end->text[0],
			       .out_of_memory = end->text,
			       .has_folder = run_ranks_folder(&f->ranks),
			       .folder = run_ranks_folder(&f->ranks),
			       .has_runtime_inside = f->runtime[0],
			       .runtime_inside = f->runtime,
			       .has_changes = changes->count,
			       .changes = { changes->count, NULL, changes->made } };

	row.has_values_not_computed = values_document(values, &row.values_not_computed);
	emit_document(out, run, &row);
	emit_close(out);
}

/* Suggests a command for all ranks of the run together. */
static void tell_files(const struct run_result *f)
{
	const char *folder = run_ranks_folder(&f->ranks);
	char more[64] = "", word[SHELL_WORD];

	if (folder) {
		say_note("%" PRIu64 " recordings of %u ranks in %s; next: gpumemtrace report %s",
			 f->files, f->ranks.count, folder, shell_word(folder, word));
		return;
	}
	if (f->files > 1)
		snprintf(more, sizeof(more), " and %" PRIu64 " more file%s", f->files - 1,
			 f->files > 2 ? "s" : "");
	say_note("%s%s, %s; next: gpumemtrace report %s", f->path, more, MANY(f->events, "event"),
		 shell_word(f->path, word));
}

static void tell_nothing(const struct run_result *f, const struct run_old *old)
{
	if (old->count == 1)
		say_note("nothing was recorded: %s; %s is still that of an earlier run", f->why,
			 file_from_here(old->paths[0]));
	else if (old->count)
		say_note("nothing was recorded: %s; %s and %s are still those of an earlier run",
			 f->why, file_from_here(old->paths[0]),
			 MANY(old->count - 1, "other recording"));
	else
		say_note("nothing was recorded: %s", f->why);
}

static void tell_run(const struct run_result *f, int code, const struct values *values,
		     const struct run_old *old)
{
	char text[VALUES_SENTENCE];

	say_command(NULL);
	if (f->runtime[0] && f->files)
		say_note("%s " INSIDE, f->runtime);
	if (f->files)
		tell_files(f);
	else
		tell_nothing(f, old);
	if (values->decisions)
		say_note("%s; %s", values_sentence(values, text), values_effect(values));
	tell_failure(code, values);
}

/* A running program. told: the notice that it makes no progress was printed. */
struct watched {
	char **command;
	struct timespec start;
	bool told;
	struct run_old old;
};

/* Prints once that the program makes no progress. The recordings read for that are never freed. */
static void tell_waiting(struct watched *w)
{
	char process[PATH_MAX], text[VALUES_SENTENCE] = "";
	struct run_result f;

	if (w->told || !simnotes_find("repeats ", process))
		return;
	w->told = true;
	run_result_find(&f, w->command, getenv(OUTPUT), &w->start);
	for (size_t i = 0; i < f.files && !text[0]; i++) {
		struct read_values *read = need_new(sizeof(*read));

		find_values(read, f.paths[i]);
		values_waiting(&read->values, text);
	}
	if (text[0])
		say_note("the program makes no progress: %s", text);
}

static void watch_run(void *ctx)
{
	struct watched *w = ctx;

	if (w->old.count && run_result_begun())
		run_output_remove_old(&w->old);
	tell_waiting(w);
}

int run_run(const struct run_options *o, struct emit *out)
{
	struct read_values read = { 0 };
	const struct values *values = &read.values;
	struct run_result f = { .files = 0 };
	struct run_end end;
	char **command = run_program_python(o->command);
	struct watched w = { .command = command, .told = o->quiet || emit_json(out) };
	struct run_changes changes;
	int ended;
	int code = run_changes_begin(&changes, o->with, command);

	if (!code)
		code = set_up(o, &w.old);
	if (code) {
		run_changes_drop(&changes);
		return code;
	}
	if (o->sim) {
		share_cards();
		open_notes();
	}
	run_result_listen();
	clock_gettime(CLOCK_REALTIME_COARSE, &w.start);
	code = child_run(command, watch_run, &w);
	run_changes_end(&changes);
	run_result_find(&f, command, getenv(OUTPUT), &w.start);
	if (f.files)
		run_output_remove_old(&w.old);
	if (o->sim)
		simnotes_close(&f);
	ended = code ? code : changes.missed ? EXIT_CHECK : 0;
	if (o->quiet || ((code == 126 || code == 127) && !f.files))
		return ended;
	if (o->sim && f.files)
		find_values(&read, f.path);
	if (!emit_json(out)) {
		tell_run(&f, code, values, &w.old);
		run_changes_say(&changes);
	}
	run_end_find(&end, &f, code);
	if (emit_json(out)) {
		emit_run(&f, code, values, &end, &changes);
	} else if (end.text[0]) {
		say_note("%s", end.text);
		say_note("next: gpumemtrace oom %s", end.file);
	}
	return ended;
}
