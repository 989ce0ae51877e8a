/* SPDX-License-Identifier: Apache-2.0 */
#include "recording.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../format/record.h"
#include "../base/ending.h"
#include "../base/human.h"
#include "../base/plain_file.h"
#include "import.h"

int tally_event(void *ctx, const struct gmt_event *e)
{
	struct tally *t = ctx;

	t->events++;
	t->kinds[e->kind < TALLY_KINDS && gmt_kind_layer(e->kind) ? e->kind : 0]++;
	if (e->kind == GMT_DROPPED)
		t->dropped += e->arg0;
	if (e->kind == GMT_THINNED && e->size)
		t->left_out += e->size - 1;
	if (e->seq <= t->last_seq)
		t->disorder++;
	else
		t->missing += e->seq - t->last_seq - 1;
	t->last_seq = e->seq;
	if (!t->first_ns)
		t->first_ns = e->time_ns;
	t->last_ns = e->time_ns > t->last_ns ? e->time_ns : t->last_ns;
	if (e->stack && !defs_node(t->defs, e->stack))
		t->no_stack++;
	if (e->name && !map_get(&t->defs->strings.ids, e->name))
		t->no_string++;
	if (e->thread && !defs_thread(t->defs, e->thread))
		t->no_thread++;
	return 0;
}

/* A text to print behind the reader's error message. */
static const char *advice(int err)
{
	return err == -GMT_ERR_NOT_A_RECORDING ? ", and not a memory snapshot of PyTorch"
	       : err == -GMT_ERR_EMPTY	       ? ": the program has recorded nothing in it"
					       : "";
}

/* Other files that people have beside recordings: their first bytes or the end of their name, and
 * advice. */
static const struct {
	const char *start, *ending, *text;
} others[] = {
	{ "version https://git-lfs", NULL,
	  "a Git LFS pointer; git lfs pull fetches the file itself" },
	{ "<html>\n<head><meta charset=\"utf-8\" /><title>GPU M", NULL,
	  "a picture of a memory timeline; export_memory_timeline(\"x.json\") writes its figures" },
	{ "BZh", NULL, "packed with bzip2; unpack it first: bzip2 -dk" },
	{ "SQLite format 3", ".nsys-rep", "a report of Nsight Systems, not a recording of memory" },
	{ "{", ".json", "JSON, but neither a recording nor a trace of torch.profiler" },
};

const char *recording_other_kind(const char *path)
{
	char start[64] = "";
	int fd = file_open(path);
	ssize_t n = fd < 0 ? -1 : pread(fd, start, sizeof(start) - 1, 0);

	if (fd >= 0)
		close(fd);
	for (size_t i = 0; n > 0 && i < sizeof(others) / sizeof(others[0]); i++)
		if (!strncmp(start, others[i].start, strlen(others[i].start)) ||
		    (others[i].ending && ending_is(path, others[i].ending)))
			return others[i].text;
	return NULL;
}

/* No figures are printed, because they would lack events of unknown kinds. */
static int refused_as_newer(const char *path)
{
	char writer[GMT_WRITER_TEXT + 1];

	gmt_reader_writer(path, writer);
	return say_unreadable("%s: written by %s%s, which records kinds that this version does not "
			      "know; update to read it",
			      path, *writer ? "gpumemtrace " : "a newer gpumemtrace", writer);
}

int recording_refused(const char *path, int err)
{
	int why = errno;
	const char *other;
	struct stat st;

	if (err == -GMT_ERR_NEWER_VERSION || err == -GMT_ERR_UNKNOWN_KIND)
		return refused_as_newer(path);
	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		return say_unreadable("%s is a folder: name a recording in it", path);
	if (!stat(path, &st) && !S_ISREG(st.st_mode))
		return say_unreadable("%s: %s", path, file_trouble(EINVAL));
	if (err == -GMT_ERR_SYS || err == GMT_ERR_SYS)
		return say_unreadable("%s: %s", path, strerror(why));
	if (err == -GMT_ERR_NOT_A_RECORDING && (other = recording_other_kind(path)))
		return say_unreadable("%s: %s", path, other);
	return say_unreadable("%s: %s%s", path, gmt_strerror(err), advice(err));
}

/* Converts a snapshot into a file without a name, which exists while the reader has it open. */
static int open_snapshot(struct recording *r, int *err)
{
	char name[40];
	int fd = memfd_create("snapshot", MFD_CLOEXEC), rc;

	if (fd < 0)
		return say_unreadable("%s cannot be converted: %s", r->path, strerror(errno));
	rc = import_file(r->path, fd);
	if (!rc) {
		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		r->reader = gmt_reader_open(name, err);
	}
	close(fd);
	return rc;
}

static uint64_t fact(const struct recording *r, const char *key)
{
	return strtoull(defs_meta(&r->defs, key).s, NULL, 10);
}

/* Every command prints this note, because its lists lack the events that were left out. */
static void say_thinned(const struct recording *r)
{
	uint64_t events = fact(r, "thinned.events"), first = fact(r, "thinned.first_ns");
	char from[HUMAN_MAX], length[HUMAN_MAX];

	if (!events)
		return;
	human_seconds(from, first > r->info->first_ns ? first - r->info->first_ns : 0);
	human_seconds(length, fact(r, "thinned.last_ns") - first);
	say_note("%s is bounded: %s events within %s from %s on, all of blocks that were freed "
		 "again, are left out%s",
		 r->path, N(events), length, from,
		 r->dropped ? "" : "; totals, peaks by step and later live blocks are exact");
}

static void say_dropped(const struct recording *r)
{
	if (r->dropped)
		say_note("%s: %s %s lost while recording: figures may be too low or too high",
			 r->path, MANY(r->dropped, "event"), r->dropped == 1 ? "was" : "were");
}

static void say_names_cut(const struct recording *r)
{
	uint64_t cut = fact(r, "recorder.names_cut");

	if (cut)
		say_note("%s: %s of ranges and functions stand without their name: the recorder "
			 "has room for about 650,000 names, at most 64 MiB",
			 r->path, MANY(cut, "event"));
}

static __thread struct recording *const *lent;
static __thread size_t lent_count;

void recording_lend(struct recording *const *open, size_t count)
{
	lent = open;
	lent_count = count;
}

/* Two recordings of one path are distinguished by the address of the path. */
static const struct recording *find_lent(const char *path)
{
	for (size_t i = 0; i < lent_count; i++)
		if (lent[i]->path == path)
			return lent[i];
	for (size_t i = 0; i < lent_count; i++)
		if (!strcmp(lent[i]->path, path))
			return lent[i];
	return NULL;
}

int recording_open(struct recording *r, const char *path)
{
	const struct recording *open = find_lent(path);

	if (!open)
		return recording_read(r, path, path);
	*r = *open;
	r->lent = true;
	return 0;
}

int recording_read(struct recording *r, const char *path, const char *name)
{
	bool snapshot = import_recognises(path);
	struct stat st;
	int err = 0, rc = 0;

	*r = (struct recording){ .path = path };
	if (snapshot)
		rc = open_snapshot(r, &err);
	else
		r->reader = gmt_reader_open(path, &err);
	if (rc)
		return rc;
	if (!r->reader)
		return recording_refused(name, err);
	r->info = gmt_reader_info(r->reader);
	r->file_bytes = snapshot && !stat(path, &st) ? (uint64_t)st.st_size : r->info->file_bytes;
	err = defs_read(r->reader, defs_add, &r->defs);
	if (err >= 0) {
		r->path = name;
		r->dropped = fact(r, "recorder.dropped");
		say_thinned(r);
		say_dropped(r);
		say_names_cut(r);
		return 0;
	}
	recording_close(r);
	return recording_refused(name, err);
}

void recording_close(struct recording *r)
{
	if (r->lent)
		return;
	gmt_reader_close(r->reader);
	defs_free(&r->defs);
}

struct run {
	struct recording *recording;
	int (*event)(void *, const struct gmt_event *);
	void *ctx;
};

static int pass_event(void *ctx, const struct gmt_event *e)
{
	struct run *run = ctx;

	if (e->kind == GMT_END)
		run->recording->ended = true;
	return run->event(run->ctx, e);
}

static void pass_progress(void *ctx, uint64_t done, uint64_t all)
{
	struct run *run = ctx;

	say_progress(run->recording->path, done, all);
}

int recording_run(struct recording *r, int (*event)(void *, const struct gmt_event *), void *ctx)
{
	static const struct gmt_tool tool = { .event = pass_event, .progress = pass_progress };
	struct run run = { r, event, ctx };
	int rc = gmt_reader_run(r->reader, 0, UINT64_MAX, &tool, &run);

	say_progress_end();
	if (!rc)
		r->read_through = true;
	if (rc < 0)
		return recording_refused(r->path, rc);
	return 0;
}
