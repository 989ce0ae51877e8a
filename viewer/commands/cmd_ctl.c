/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl: controls a process that is being recorded. Requests go through its live file. A copy and
 * figures are read from its files, so that they work for a stopped process too.
 */
#include <limits.h>
#include <string.h>
#include <time.h>

#include "../recording/asking.h"
#include "../recording/copying.h"
#include "../recording/running.h"
#include "../ask/command.h"

#define SECOND 1000000000u

struct request {
	const struct ctl_options *o;
	struct asking control;
	const char *recording;
	struct row_ctl row;
};

static int pause_it(struct request *q)
{
	return asking_ask(&q->control, GMT_REQUEST_PAUSE, NULL);
}

static int resume_it(struct request *q)
{
	return asking_ask(&q->control, GMT_REQUEST_RESUME, NULL);
}

static int mark_it(struct request *q)
{
	return asking_ask(&q->control, GMT_REQUEST_MARK, q->o->argument);
}

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

/* Two looks, a second between them. */
static int measure_rates(struct request *q)
{
	const struct timespec second = { 1, 0 };
	struct row_ctl_stats first, *s = &q->row.stats;
	struct asking_rings rings;
	uint64_t began, ended;

	look_at_figures(q->control.c, &first, &began);
	nanosleep(&second, NULL);
	look_at_figures(q->control.c, s, &ended);
	asking_rings(&q->control, &rings);
	s->events_per_second = rate(first.events, s->events, ended - began);
	s->bytes_per_second = rate(first.file_bytes, s->file_bytes, ended - began);
	s->rings = rings.rings;
	s->threads = rings.owned;
	s->waiting = rings.waiting;
	s->fullest_ring = (double)rings.fullest / GMT_RING_SLOTS;
	s->answers = ended != began;
	q->row.has_stats = true;
	return 0;
}

static const struct what {
	const char *name, *argument; /* NULL: it takes none */
	int (*act)(struct request *q);
	const char *said;
} whats[] = {
	{ "pause", NULL, pause_it, "paused: events are recorded without stacks" },
	{ "resume", NULL, resume_it, "stacks are recorded again" },
	{ "mark", "NAME", mark_it, "marked" },
	{ "snapshot", "FILE", copy_it, NULL },
	{ "stats", NULL, measure_rates, NULL },
};

static const struct what *find_request(const char *name)
{
	for (size_t i = 0; i < sizeof(whats) / sizeof(whats[0]); i++)
		if (!strcmp(whats[i].name, name))
			return &whats[i];
	return NULL;
}

int check_ctl(struct ctl_options *o)
{
	const struct what *w = find_request(o->what);

	if (!w)
		return say_error(EXIT_USAGE,
				 "\"%s\" is not a request: pause, resume, mark NAME, snapshot FILE "
				 "or stats",
				 o->what);
	if (w->argument && (!o->argument || !*o->argument))
		return say_error(EXIT_USAGE, "%s needs a %s", w->name, w->argument);
	if (!w->argument && o->argument)
		return say_error(EXIT_USAGE, "%s takes nothing more", w->name);
	return 0;
}

static void print_stats(struct emit *out, const struct row_ctl_stats *s)
{
	char n[HUMAN_MAX], bytes[HUMAN_MAX], more[HUMAN_MAX];

	emit_line(out, "events        %s, %.0f a second", human_count(n, s->events),
		  s->events_per_second);
	emit_line(out, "recording     %s, %s a second", human_bytes(bytes, s->file_bytes),
		  human_bytes(more, (uint64_t)s->bytes_per_second));
	emit_line(out, "dropped       %s", human_count(n, s->dropped));
	emit_line(out, "recorder      %s of memory, %s stack nodes",
		  human_bytes(bytes, s->recorder_bytes), human_count(n, s->stack_nodes));
	if (s->stacks_cut)
		emit_line(out, "stacks cut    %s, as there is no room for more nodes",
			  human_count(n, s->stacks_cut));
	emit_line(out, "rings         %s for %s threads, the fullest at %.0f %%",
		  human_count(n, s->rings), human_count(more, s->threads), s->fullest_ring * 100);
	if (!s->answers)
		emit_line(out,
			  "The process is stopped or busy: its recorder wrote nothing within a "
			  "second.");
}

static void print_answer(struct emit *out, const struct request *q, const struct what *w)
{
	char n[HUMAN_MANY];

	emit_document(out, ctl, &q->row);
	if (emit_json(out))
		return;
	if (w->said)
		emit_line(out, "Process %u: %s", q->control.pid, w->said);
	if (q->row.has_events)
		emit_line(out, "%s: %s of process %u", q->o->argument,
			  human_many(n, q->row.events, "event"), q->control.pid);
	if (w->act == resume_it && q->row.paused)
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
		rc = w->act(&q);
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
