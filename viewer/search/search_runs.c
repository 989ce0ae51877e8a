/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runs of a search. Results of an earlier search in the folder are reused, the other runs are
 * started, as many at once as cores and memory allow. An interrupt ends them all; their results so
 * far stay.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../base/need.h"
#include "../base/proc.h"
#include "../base/say.h"
#include "search.h"

#define AT_ONCE 64
#define NEEDS	(2ull << 30) /* memory of the machine for a run, before one was measured */
#define REST_MS 20

static volatile sig_atomic_t interrupted;

static void note_interrupt(int signal)
{
	(void)signal;
	interrupted = 1;
}

struct trial *search_trial(struct search *s, const struct card *card, const struct setting *to)
{
	struct trial *t;

	for (size_t i = 0; i < s->trial_count; i++)
		if (s->trials[i]->card == card &&
		    vary_same(&s->plan.varied, &s->trials[i]->setting, to))
			return s->trials[i];
	t = need_new(sizeof(*t));
	trial_init(t, &s->plan, card, to);
	*need_item(s->trials, s->trial_count, s->trial_room) = t;
	return t;
}

static uint64_t available(void)
{
	char text[4096];
	const char *row;

	proc_read(text, sizeof(text), "/proc/meminfo");
	row = proc_row(text, "MemAvailable");
	return row ? strtoull(row, NULL, 10) << 10 : 0;
}

static size_t most_at_once(const struct search *s)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN), n = s->jobs ? s->jobs : cores;

	if (!s->jobs && world_runs(&s->plan.world) > 1)
		n = cores / world_runs(&s->plan.world);
	return n < 1 ? 1 : n > AT_ONCE ? AT_ONCE : (size_t)n;
}

/* The first run may always start; another one only if memory is available for it. */
static bool may_start(const struct search *s, size_t running)
{
	long ranks = world_runs(&s->plan.world);
	uint64_t needs = 0;

	if (!running)
		return true;
	if (running >= most_at_once(s))
		return false;
	for (size_t i = 0; i < s->trial_count; i++)
		needs = s->trials[i]->resident > needs ? s->trials[i]->resident : needs;
	needs = needs ? needs + needs / 4 : NEEDS;
	needs *= ranks ? (uint64_t)ranks : 1;
	return available() > needs;
}

static pid_t start(struct search *s, struct trial *t)
{
	pid_t pid;
	char *page =
		mmap(NULL, TRIAL_DOING, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	t->doing = page == MAP_FAILED ? NULL : page;
	s->plan.threads = most_at_once(s) > 1 ? 1 : 0;
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		_exit(trial_run(t, &s->plan));
	return pid;
}

static int finish(struct search *s, struct trial *t)
{
	char path[PATH_MAX];

	t->fresh = true;
	s->ran++;
	if (t->doing)
		munmap(t->doing, TRIAL_DOING);
	t->doing = NULL;
	if (trial_read(t, &s->plan))
		return 0;
	trial_path(t, &s->plan, ".json", path);
	return say_error(EXIT_UNREADABLE, "%s could not be written: is there room left?", path);
}

/* Progress: how many are done, and what the longest run waits for. */
static void say_running(struct trial *const *which, size_t running, size_t done, size_t count)
{
	char text[TRIAL_DOING + 64];

	if (!running)
		return;
	snprintf(text, sizeof(text), "runs %zu of %zu, %zu running; %s", done, count, running,
		 which[0]->doing ? which[0]->doing : "");
	say_doing(text);
}

/* Whether one of them has ended; its index in *at. A run that was ended from outside leaves no
 * result. That counts as an interrupt, because a signal to the whole group reaches the runs
 * first. */
static bool one_has_ended(const pid_t *pids, size_t running, size_t *at)
{
	const struct timespec rest = { .tv_nsec = REST_MS * 1000000L };
	int status = 0;
	pid_t pid = waitpid(-1, &status, WNOHANG);

	if (!pid)
		nanosleep(&rest, NULL);

	if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGTERM)
		interrupted = 1;

	for (*at = 0; pid > 0 && *at < running; ++*at)
		if (pids[*at] == pid)
			return true;
	return false;
}

static int end_all(const pid_t *pids, size_t running)
{
	for (size_t i = 0; i < running; i++)
		kill(pids[i], SIGTERM);
	for (size_t i = 0; i < running; i++)
		while (waitpid(pids[i], NULL, 0) < 0 && errno == EINTR)
			;
	say_progress_end();
	return SEARCH_INTERRUPTED;
}

static int run_list(struct search *s, struct trial **list, size_t count)
{
	struct trial *which[AT_ONCE];
	pid_t pids[AT_ONCE];
	size_t running = 0, next = 0, at, done = 0;
	int rc = 0;

	while (!rc && !interrupted && (running || next < count)) {
		while (next < count && may_start(s, running)) {
			which[running] = list[next++];
			pids[running] = start(s, which[running]);
			if (pids[running] < 0)
				return say_error(EXIT_UNREADABLE, "no process can be started: %s",
						 strerror(errno));
			running++;
		}
		say_running(which, running, done, count);
		if (!one_has_ended(pids, running, &at))
			continue;
		if (!interrupted)
			rc = finish(s, which[at]);
		running--;
		memmove(which + at, which + at + 1, (running - at) * sizeof(*which));
		memmove(pids + at, pids + at + 1, (running - at) * sizeof(*pids));
		done++;
	}
	if (interrupted || rc)
		rc = end_all(pids, running) && rc ? rc : SEARCH_INTERRUPTED;
	return rc;
}

/* A failed run is repeated, because what it lacked may be there now. So is one that timed out, if
 * it gets more time. */
static bool is_an_answer(const struct search *s, const struct trial *t)
{
	return t->verdict != ENDING_FAILED && (!t->limit || (uint64_t)s->plan.seconds <= t->limit);
}

int search_run(struct search *s, struct trial **list, size_t count)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction note = { .sa_handler = note_interrupt }, old[3];
	struct trial **due = need_new((count + 1) * sizeof(*due));
	size_t n = 0;
	int rc = 0;

	for (size_t i = 0; i < count; i++) {
		bool again = list[i]->verdict != ENDING_NONE;

		for (size_t k = 0; k < n && !again; k++)
			again = due[k] == list[i];
		if (again)
			continue;
		if (trial_read(list[i], &s->plan) && is_an_answer(s, list[i]))
			s->kept++;
		else
			due[n++] = list[i];
	}
	for (size_t i = 0; i < 3; i++)
		sigaction(signals[i], &note, &old[i]);
	rc = n ? run_list(s, due, n) : 0;
	for (size_t i = 0; i < 3; i++)
		sigaction(signals[i], &old[i], NULL);
	free(due);
	return rc;
}
