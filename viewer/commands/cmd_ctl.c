/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl: controls a process that is being recorded. Requests go through its live file. A copy and
 * figures are read from its files, so that they work for a stopped process too.
 */
#include <fcntl.h>
#include <math.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../format/control.h"
#include "../ask/command.h"
#include "../base/proc.h"
#include "../recording/copying.h"
#include "../recording/running.h"

/* Requests to a process that is being recorded, through the live file that it has mapped. */

struct asking {
	int fd;
	uint64_t bytes; /* length of the mapped live file */
	uint8_t *page;
	struct gmt_control *c;
	uint32_t pid;
};

#define PATIENCE_MS 5000
#define LOOK_MS	    2

static void rest(void)
{
	const struct timespec t = { 0, LOOK_MS * 1000000 };

	nanosleep(&t, NULL);
}

static int map(struct asking *k, const char *path)
{
	struct stat st;

	k->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (k->fd < 0 && errno == ENOENT)
		return say_usage("%s is not there: the program has ended, or its recording is in "
				 "another place",
				 path);
	if (k->fd < 0)
		return say_unreadable("%s: %s%s", path, strerror(errno),
				      errno == EACCES ? "; it belongs to another user" : "");
	if (fstat(k->fd, &st) || !S_ISREG(st.st_mode) || (uint64_t)st.st_size < GMT_LIVE_PAGE)
		return say_unreadable("%s is not a live file", path);
	k->bytes = (uint64_t)st.st_size;
	k->page = mmap(NULL, k->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, k->fd, 0);
	if (k->page != MAP_FAILED)
		return 0;
	k->page = NULL;
	return say_unreadable("%s: %s", path, strerror(errno));
}

static int check_live_page(struct asking *k, const char *path)
{
	const struct gmt_live_header *h = (const struct gmt_live_header *)k->page;

	if (h->magic != GMT_LIVE_MAGIC || h->page != GMT_LIVE_PAGE)
		return say_unreadable("%s is not a live file", path);
	k->pid = h->pid;
	k->c = gmt_control_of(k->page);
	if (h->closed || !running_lives(h->pid))
		return say_usage("process %u has ended; its recording can be read", h->pid);
	if (k->c->version != GMT_CONTROL_VERSION)
		return say_usage("process %u is recorded by %s version of the library, which takes "
				 "no requests from this one",
				 h->pid, k->c->version ? "another" : "an older");
	return 0;
}

/* recording: its path. Returns 0, or an exit code after an error message. */
static int asking_open(struct asking *k, const char *recording)
{
	char path[PATH_MAX + 8];
	int rc;

	*k = (struct asking){ .fd = -1 };
	snprintf(path, sizeof(path), "%s.live", recording);
	rc = map(k, path);
	return rc ? rc : check_live_page(k, path);
}

static void asking_close(struct asking *k)
{
	if (k->page)
		munmap(k->page, k->bytes);
	if (k->fd >= 0)
		close(k->fd);
}

/* taken: the process has begun with the request. */
static int no_answer(const struct asking *k, bool taken)
{
	char text[PROC_STAT], state;
	const char *stat = proc_stat(text, (pid_t)k->pid);

	state = stat ? *stat : 'Z';
	if (state == 'Z')
		return say_usage("process %u has ended; its recording can be read", k->pid);
	if (state == 'T' || state == 't')
		return say_error(EXIT_CHECK,
				 "process %u is stopped and does not answer; %s "
				 "(kill -CONT %u lets it go on)",
				 k->pid,
				 taken ? "it has begun with the request" : "nothing was changed",
				 k->pid);
	return say_error(EXIT_CHECK, "process %u does not answer for 5 seconds; %s", k->pid,
			 taken ? "it has begun with the request and might still do it"
			       : "nothing was changed");
}

/* Locks the live file for one request. The holder waits for its answer at most 2 * PATIENCE_MS. */
static int lock(const struct asking *k)
{
	for (int ms = 0; ms < 2 * PATIENCE_MS; ms += LOOK_MS, rest())
		if (!flock(k->fd, LOCK_EX | LOCK_NB))
			return 0;
	return say_error(EXIT_CHECK, "another gpumemtrace ctl is waiting for process %u", k->pid);
}

static bool wait_for(const struct asking *k, uint32_t done)
{
	for (int ms = 0; ms < PATIENCE_MS; ms += LOOK_MS, rest())
		if (__atomic_load_n(&k->c->done, __ATOMIC_ACQUIRE) != done)
			return true;
	return false;
}

/* Sends a request and waits until it is carried out. Returns 0, or EXIT_CHECK after an error
 * message: then the request was withdrawn, unless the process had taken it already. */
static int asking_ask(struct asking *k, enum gmt_request what, const char *text)
{
	size_t len = text ? strnlen(text, GMT_CONTROL_TEXT) : 0;
	uint32_t done;
	int rc = lock(k);

	if (rc)
		return rc;
	done = __atomic_load_n(&k->c->done, __ATOMIC_ACQUIRE);
	memcpy(k->c->text, text ? text : "", len);
	__atomic_store_n(&k->c->length, (uint32_t)len, __ATOMIC_RELAXED);
	__atomic_store_n(&k->c->what, what, __ATOMIC_RELEASE);
	/* a request that the process has taken cannot be withdrawn */
	if (!wait_for(k, done)) {
		bool taken = !__atomic_exchange_n(&k->c->what, GMT_REQUEST_NONE, __ATOMIC_ACQ_REL);

		if (!taken || !wait_for(k, done))
			rc = no_answer(k, taken);
	}
	flock(k->fd, LOCK_UN);
	return rc;
}

static void count_rings(const struct asking *k, struct row_ctl_stats *s)
{
	for (uint64_t at = GMT_LIVE_PAGE; at + GMT_RING_REGION <= k->bytes; at += GMT_RING_REGION) {
		const struct gmt_ring *r = (const struct gmt_ring *)(k->page + at);
		uint32_t used = gmt_ring_used(r);

		used = used < GMT_RING_SLOTS ? used : GMT_RING_SLOTS;
		s->rings++;
		s->threads += __atomic_load_n(&r->state, __ATOMIC_RELAXED) == GMT_RING_OWNED;
		s->waiting += used;
		s->fullest_ring = fmax(s->fullest_ring, (double)used / GMT_RING_SLOTS);
	}
}

#define SECOND 1000000000u

struct request {
	const struct ctl_options *o;
	struct asking control;
	const char *recording;
	struct row_ctl row;
};

static int copy_it(struct request *q)
{
	struct recording r;
	int rc = recording_open(&r, q->recording);

	if (rc)
		return rc;
	rc = copying_write(&r, q->o->argument, COPYING_YES, &q->row.events);
	q->row.has_events = q->row.has_snapshot = true;
	q->row.snapshot = q->o->argument;
	recording_close(&r);
	return rc;
}

#define FIGURE(name) __atomic_load_n(&c->name, __ATOMIC_RELAXED)

static void look_at_figures(const struct gmt_control *c, struct row_ctl_stats *s, uint64_t *when)
{
	*when = __atomic_load_n(&c->time_ns, __ATOMIC_ACQUIRE);
	*s = (struct row_ctl_stats){
		.events = FIGURE(events),
		.file_bytes = FIGURE(bytes),
		.dropped = FIGURE(dropped),
		.recorder_bytes = FIGURE(memory),
		.stack_nodes = FIGURE(nodes),
		.stacks_cut = FIGURE(cut),
	};
}

static double rate(uint64_t before, uint64_t after, uint64_t ns)
{
	return ns && after > before ? (double)(after - before) * SECOND / (double)ns : 0;
}

/* Reads the counters twice, a second apart. */
static int measure_rates(struct request *q)
{
	const struct timespec second = { 1, 0 };
	struct row_ctl_stats first, *s = &q->row.stats;
	uint64_t began, ended;

	look_at_figures(q->control.c, &first, &began);
	nanosleep(&second, NULL);
	look_at_figures(q->control.c, s, &ended);
	count_rings(&q->control, s);
	s->events_per_second = rate(first.events, s->events, ended - began);
	s->bytes_per_second = rate(first.file_bytes, s->file_bytes, ended - began);
	s->answers = ended != began;
	q->row.has_stats = true;
	return 0;
}

static const struct what {
	const char *name, *argument; /* NULL: it takes none */
	enum gmt_request request;    /* sent to the process if act is NULL */
	const char *said;
	int (*act)(struct request *q); /* reads the process's files */
} whats[] = {
	{ "pause", .request = GMT_REQUEST_PAUSE,
	  .said = "paused: events are recorded without stacks" },
	{ "resume", .request = GMT_REQUEST_RESUME, .said = "stacks are recorded again" },
	{ "mark", "NAME", .request = GMT_REQUEST_MARK, .said = "marked" },
	{ "snapshot", "FILE", .act = copy_it },
	{ "stats", .act = measure_rates },
};

static const struct what *find_request(const char *name)
{
	return FIRST_OF(x, whats, sizeof(whats) / sizeof(whats[0]), !strcmp(x->name, name));
}

int check_ctl(struct ctl_options *o)
{
	const struct what *w = find_request(o->what);

	if (!w)
		return say_usage(
			"\"%s\" is not a request: pause, resume, mark NAME, snapshot FILE or stats",
			o->what);
	if (w->argument && (!o->argument || !*o->argument))
		return say_usage("%s needs a %s", w->name, w->argument);
	if (!w->argument && o->argument)
		return say_usage("%s takes nothing more", w->name);
	return 0;
}

static void print_stats(struct emit *out, const struct row_ctl_stats *s)
{
	char more[HUMAN_MAX];

	emit_line(out, "events        %s, %.0f a second", N(s->events), s->events_per_second);
	emit_line(out, "recording     %s, %s a second", B(s->file_bytes),
		  human_bytes(more, (uint64_t)s->bytes_per_second));
	emit_line(out, "dropped       %s", N(s->dropped));
	emit_line(out, "recorder      %s of memory, %s stack nodes", B(s->recorder_bytes),
		  N(s->stack_nodes));
	if (s->stacks_cut)
		emit_line(out, "stacks cut    %s, as there is no room for more nodes",
			  N(s->stacks_cut));
	emit_line(out, "rings         %s for %s threads, the fullest at %.0f %%", N(s->rings),
		  human_count(more, s->threads), s->fullest_ring * 100);
	if (!s->answers)
		emit_line(out,
			  "The process is stopped or busy: its recorder wrote nothing within a "
			  "second.");
}

static void print_answer(struct emit *out, const struct request *q, const struct what *w)
{
	emit_document(out, ctl, &q->row);
	if (emit_json(out))
		return;
	if (w->said)
		emit_line(out, "Process %u: %s", q->control.pid, w->said);
	if (q->row.has_events)
		emit_line(out, "%s: %s of process %u", q->o->argument, MANY(q->row.events, "event"),
			  q->control.pid);
	if (w->request == GMT_REQUEST_RESUME && q->row.paused)
		emit_line(out,
			  "The program itself has paused: there will be stacks when it resumes.");
	if (q->row.has_stats)
		print_stats(out, &q->row.stats);
}

int run_ctl(const struct ctl_options *o, struct emit *out)
{
	struct request q = { .o = o };
	const struct what *w = find_request(q.o->what);
	char path[PATH_MAX];
	long pid;
	int rc = running_find(q.o->process, path, &pid);

	if (rc)
		return rc;
	q.recording = path;
	rc = asking_open(&q.control, path);
	if (!rc)
		rc = w->act ? w->act(&q) : asking_ask(&q.control, w->request, o->argument);
	if (!rc) {
		q.row.pid = q.control.pid;
		q.row.recording = path;
		q.row.what = w->name;
		q.row.paused = q.control.c->paused || q.control.c->program;
		print_answer(out, &q, w);
	}
	asking_close(&q.control);
	return rc;
}
