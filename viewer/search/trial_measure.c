/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result of a run: figures of its recordings (of the process with the highest peak if there are
 * several), the device's own counts, and the cause if memory ran out.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../answers/peak.h"
#include "../base/human.h"
#include "../base/need.h"
#include "../base/outfile.h"
#include "../oom/oom.h"
#include "../ranks/ranks_look.h"
#include "../stacks/owner_words.h"
#include "trial_watch.h"

/* Figures of one recording. */
struct seen {
	long rank; /* -1: not known */
	uint64_t peak, reserved;
};

struct measured {
	struct emit *out;
	const struct trial *trial;
	const struct plan *plan;
	char **paths;
	struct seen *seen; /* one for each */
	struct trial came; /* figures of it */
	size_t main;	   /* index in paths: the highest peak */
	size_t first;	   /* the first that ran out of memory, and its wall-clock time */
	int64_t first_ns;
	bool found, refused; /* refused: out of memory, and a process did not recover; */
	bool caught;	     /* a training process recovered */
	uint64_t fails;	     /* recorded allocations that failed, retried or not */
};

static void read_usage(const struct trial *t, const struct plan *p, struct usage *u)
{
	char path[PATH_MAX];
	int fd;

	*u = (struct usage){ 0 };
	trial_path(t, p, ".usage", path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, u, sizeof(*u)) != sizeof(*u) || u->magic != USAGE_MAGIC)
		*u = (struct usage){ 0 };
	if (fd >= 0)
		close(fd);
	unlink(path);
}

/* Whether the latest span of that phase began after the event. */
static bool comes_after(const struct spans *s, enum phase phase, uint64_t seq, bool *any)
{
	for (size_t i = s->count; i-- > 0;)
		if (s->items[i].phase == phase) {
			*any = true;
			return s->items[i].extent.first_seq > seq;
		}
	return false;
}

/* Whether the allocation failed in a training step, and not in an evaluation. */
static bool is_training(const struct spans *s, uint64_t seq)
{
	const struct span *at = NULL;

	for (size_t i = 0; i < s->count && s->items[i].extent.first_seq <= seq; i++)
		at = &s->items[i];
	return at && (at->phase == PHASE_BACKWARD || at->phase == PHASE_OPTIMIZER ||
		      (at->phase == PHASE_FORWARD && at->kept));
}

/* Whether the program recovered. In a training step its optimizer must have run afterwards. In any
 * other work an allocation must have succeeded again. */
static bool went_on(const struct spans *s, const struct refusal *r)
{
	bool optimizer = false;

	if (comes_after(s, PHASE_OPTIMIZER, r->event.seq, &optimizer))
		return true;
	if (!optimizer && comes_after(s, PHASE_BACKWARD, r->event.seq, &optimizer))
		return true;
	return !is_training(s, r->event.seq) && r->later_allocs;
}

static uint64_t count_fails(const struct lives *l)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < l->marks.count; i++)
		n += ((const struct lives_mark *)rows_at(&l->marks, i))->kind == GMT_MEM_FAIL;
	return n;
}

static void note_refusals(struct measured *m, size_t i, const struct recording *r,
			  const struct timeline *t)
{
	struct refusal refusal;
	int64_t ns;

	m->fails += count_fails(&t->model.lives);
	if (!refusals_find(&refusal, &t->model.lives, 0))
		return;
	ns = (int64_t)refusal.event.ns + r->info->realtime_minus_monotonic_ns;
	if (!m->came.refusals || ns < m->first_ns) {
		m->first = i;
		m->first_ns = ns;
	}
	m->refused |= !went_on(&t->model.spans, &refusal);
	m->caught |= t->model.spans.trains;
	m->came.refusals += refusal.count;
}

static long rank_of(const char *path)
{
	struct rank_file f;
	long rank;

	ranks_look(&f, need_copy(path, strlen(path)));
	rank = f.rank;
	ranks_look_free(&f);
	return rank;
}

/* Reads one recording; its figures become those of the run if its peak is the highest so far. */
static void weigh(struct measured *m, size_t i)
{
	struct recording r;
	struct timeline t = { 0 };

	m->seen[i] = (struct seen){ .rank = rank_of(m->paths[i]) };
	if (recording_open(&r, m->paths[i]))
		return;
	if (!timeline_open_any(&t, &r)) {
		const struct model_device *d = t.device < 0 ? NULL : &t.model.devices[t.device];
		struct seen *s = &m->seen[i];

		s->peak = d ? model_curve(d)->peak.bytes : 0;
		s->reserved = !d ? 0 : d->framework ? d->reserved.peak.bytes : d->driver.peak.bytes;
		s->reserved = s->reserved > s->peak ? s->reserved : s->peak;
		if (d && (!m->found || s->peak > m->came.peak)) {
			m->found = true;
			m->main = i;
			m->came.peak = s->peak;
			m->came.reserved = s->reserved;
			m->came.steps = steps_number(&t.steps);
			m->came.units = m->came.steps;
			m->came.by_steps = m->came.steps > 0;
			m->came.rising = watched_steps(&t.steps, 0).each;
		}
		note_refusals(m, i, &r, &t);
		timeline_close(&t);
	}
	recording_close(&r);
}

/* Describes the peak's owners and moment. */
static void describe(struct measured *m)
{
	struct peak_answer a;
	struct recording r;
	struct timeline t = { 0 };
	char words[OWNER_WORDS];

	if (recording_open(&r, m->paths[m->main]))
		return;
	if (!timeline_open(&t, &r, -1)) {
		peak_find(&a, &t);
		emit_text(m->out, "peak_text", a.instant.text);
		if (a.lines.count) {
			emit_text(m->out, "peak_class", category_name(a.lines.items[0].category));
			emit_number(m->out, "peak_class_bytes",
				    a.shot.bytes[a.lines.items[0].category]);
			emit_text(m->out, "peak_line",
				  owner_words(&a.lines.items[0].owner, words, sizeof(words), 0));
			emit_number(m->out, "peak_line_bytes", a.lines.items[0].bytes);
		}
		emit_object(m->out, "categories");
		for (unsigned c = 0; c < CATEGORIES; c++)
			if (a.shot.bytes[c])
				emit_number(m->out, category_name(c), a.shot.bytes[c]);
		emit_end(m->out);
		peak_free(&a);
		timeline_close(&t);
	}
	recording_close(&r);
}

static void explain(struct measured *m)
{
	struct recording r;
	struct oom o;
	struct oom_answer a;
	struct row_oom row;

	if (recording_open(&r, m->paths[m->first]))
		return;
	if (!oom_open(&o, &r, 0) && o.refusal.nth) {
		oom_answer(&a, &o);
		row = oom_document(&a);
		row.recording = m->paths[m->first];
		row.rank = "";
		document_write(m->out, "oom", &document_oom, &row);
		oom_close(&o);
	}
	recording_close(&r);
}

/* The program's last line of output, or this tool's if the program printed nothing. */
static void last_words(const struct trial *t, const struct plan *p, char *words, size_t room)
{
	char path[PATH_MAX], line[2048];
	bool own = false;
	FILE *f;

	trial_path(t, p, ".log", path);
	f = fopen(path, "r");
	words[0] = 0;
	while (f && fgets(line, sizeof(line), f)) {
		bool ours = !strncmp(line, "gpumemtrace", 11);

		line[strcspn(line, "\n")] = 0;
		if (!line[strspn(line, " \t\r")] || (ours && own))
			continue;
		snprintf(words, room, "%s", line + strspn(line, " \t\r"));
		own |= !ours;
	}
	if (f)
		fclose(f);
}

/* A failed allocation that the program did not recover from is the reason, however it ended. A
 * library may only report that a call failed. Then only the device's counts show the failed
 * allocation. */
static enum ending judge(const struct measured *m, const struct trial_end *end,
			 const struct usage *u)
{
	bool failed = end->code && !end->early;

	if (m->refused || (failed && m->came.refusals && !m->caught) ||
	    (failed && u->refused > m->fails))
		return ENDING_REFUSED;
	if (failed || !m->found || end->hangs[0] || (end->late[0] && !end->partly))
		return ENDING_FAILED;
	return end->early && end->stable != STABLE_YES ? ENDING_UNSTABLE : ENDING_FITS;
}

/* For a run that was ended early: how much of it was observed. */
static void write_early(struct measured *m, const struct trial_end *end)
{
	struct trial *came = &m->came;
	char text[256], n[HUMAN_MANY];

	came->early = end->early;
	if (!end->early || end->hangs[0])
		return;
	came->rising = end->course.stable.each;
	came->by_steps = end->course.steps;
	if (!came->by_steps)
		came->units = end->course.units;
	human_many(n, came->units, came->by_steps ? "step" : "second");
	snprintf(text, sizeof(text), "Measured over %s%s; the run was ended then.", n,
		 came->by_steps ? "" : " of work on the device");
	if (!end->idle[0] && !end->late[0])
		emit_text(m->out, "ended", text);
}

static void write_figures(struct measured *m, const struct plan *p, const struct trial_end *end)
{
	const struct trial *t = m->trial;
	struct trial *came = &m->came;
	struct emit *out = m->out;
	struct usage u;
	char words[2048];

	read_usage(t, p, &u);
	for (int i = 0; i < USAGE_DEVICES; i++)
		came->device = u.peak[i] > came->device ? u.peak[i] : came->device;
	came->context = u.context;
	came->asked = u.asked;
	came->nccl = u.nccl[0];
	came->nccl_least = u.nccl[1];
	came->nccl_most = u.nccl[2];
	came->code = (uint64_t)end->code;
	came->resident = end->resident;
	came->limit = end->late[0] ? (uint64_t)p->seconds : 0;
	emit_text(out, "fingerprint", t->fingerprint);
	emit_text(out, "card", t->card->name);
	emit_text(out, "verdict", trial_verdict(judge(m, end, &u)));
	write_early(m, end);
	trial_write_figures(came, out);
	last_words(t, p, words, sizeof(words));
	emit_text(out, "last_words", words);
	if (end->hangs[0])
		emit_text(out, "hangs", end->hangs);
	if (end->idle[0])
		emit_text(out, "idle", end->idle);
	if (end->late[0])
		emit_text(out, "late", end->late);
	if (m->found)
		emit_text(out, "recording", strrchr(m->paths[m->main], '/') + 1);
}

/* Peaks by rank, in a world of which only some ranks run. */
static void write_ranks(const struct measured *m, const struct plan *p)
{
	emit_array(m->out, "ranks");
	for (size_t k = 0; k < p->world.count; k++)
		for (size_t i = 0; m->paths[i]; i++) {
			if (m->seen[i].rank != p->world.ranks[k] || !m->seen[i].peak)
				continue;
			emit_object(m->out, NULL);
			emit_number(m->out, "rank", (uint64_t)m->seen[i].rank);
			emit_number(m->out, "peak_bytes", m->seen[i].peak);
			emit_number(m->out, "peak_reserved_bytes", m->seen[i].reserved);
			emit_text(m->out, "recording", strrchr(m->paths[i], '/') + 1);
			emit_end(m->out);
		}
	emit_end(m->out);
}

/* Runs this tool's `html` command. */
static void make_page(const struct measured *m, const struct plan *p)
{
	char path[PATH_MAX];
	pid_t pid;

	trial_path(m->trial, p, ".html", path);
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, STDOUT_FILENO);
		execl("/proc/self/exe", "gpumemtrace", "html", m->paths[m->main], "-o", path, NULL);
		_exit(126);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

int trial_measure(const struct trial *t, const struct plan *p, const struct trial_end *end)
{
	struct measured m = { .trial = t, .plan = p, .paths = trial_recordings(t, p) };
	struct outfile file;
	char path[PATH_MAX];
	int rc;

	trial_path(t, p, ".json", path);
	rc = outfile_begin(&file, path);
	if (rc)
		return rc;
	m.seen = need_new((need_count(m.paths) + 1) * sizeof(*m.seen));
	for (size_t i = 0; m.paths[i]; i++)
		weigh(&m, i);
	m.out = emit_open(file.f, true);
	emit_object(m.out, NULL);
	write_figures(&m, p, end);
	write_ranks(&m, p);
	free(m.seen);
	if (m.found)
		describe(&m);
	if (m.came.refusals)
		explain(&m);
	emit_end(m.out);
	emit_close(m.out);
	if (p->pages && m.found)
		make_page(&m, p);
	vary_command_free(m.paths);
	return outfile_commit(&file);
}
