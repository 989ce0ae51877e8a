/* SPDX-License-Identifier: Apache-2.0 */
#include "ranks_work.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/ending.h"
#include "../recording/recording.h"

#define AT_ONCE 4   /* each may need what the largest recording needs */
#define A_PART	128 /* in a worker's exit status: what it read was a part */

struct worker {
	pid_t pid;
	FILE *out, *err;
	int why; /* errno if it could not be started */
};

/* A file without a name. */
static FILE *scratch(void)
{
	FILE *f = tmpfile();
	int fd;

	if (f)
		return f;
	fd = memfd_create("ranks", MFD_CLOEXEC);
	return fd < 0 ? NULL : fdopen(fd, "w+");
}

static void become_worker(const struct ranks_work *w, size_t i, struct worker *x)
{
	int rc;

	prctl(PR_SET_PDEATHSIG, SIGTERM); /* it may have files to remove */
	dup2(fileno(x->err), STDERR_FILENO);
	rc = w->work(w->ctx, i, x->out);
	if (fflush(x->out) || ferror(x->out)) {
		rc = say_unreadable("the answer cannot be kept: %s", strerror(errno));
		/* A part could pass for the answer: its first document may be complete. */
		if (ftruncate(fileno(x->out), 0))
			raise(SIGKILL);
	}
	fflush(stderr);
	_exit(rc | (recording_any_part() ? A_PART : 0));
}

static void start_worker(const struct ranks_work *w, size_t i, struct worker *x)
{
	*x = (struct worker){ .pid = -1, .out = scratch(), .err = scratch() };
	fflush(NULL); /* or both would write what waits in a buffer */
	if (x->out && x->err)
		x->pid = fork();
	if (x->pid == 0)
		become_worker(w, i, x);
	if (x->pid < 0)
		x->why = errno;
}

/* "gpumemtrace report: what is wrong\n" of the last line -> "what is wrong". */
static char *last_words(FILE *f)
{
	char text[2048];
	const char *line, *words;
	ssize_t n = f ? pread(fileno(f), text, sizeof(text) - 1, 0) : 0;

	n = n < 0 ? 0 : n;
	while (n && text[n - 1] == '\n')
		n--;
	text[n] = 0;
	line = ending_behind(text, '\n');
	words = strncmp(line, "gpumemtrace", 11) ? NULL : strstr(line, ": ");
	line = words ? words + 2 : line;
	return need_text(line);
}

static char *ended_by(int status)
{
	char text[80];

	snprintf(text, sizeof(text), "reading it was ended by signal %d (%s)", WTERMSIG(status),
		 strsignal(WTERMSIG(status)));
	return need_text(text);
}

static void pass_on_result(const struct ranks_work *w, size_t i, struct ranks_result *r, FILE *out)
{
	struct stat st;
	void *text = MAP_FAILED;

	r->text = "";
	if (out && !fstat(fileno(out), &st) && st.st_size) {
		text = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fileno(out), 0);
		if (text == MAP_FAILED && !r->rc) {
			r->rc = EXIT_UNREADABLE;
			r->error = "the answer cannot be read: out of memory";
		}
	}
	if (text != MAP_FAILED) {
		r->text = text;
		r->len = (size_t)st.st_size;
	}
	w->done(w->ctx, i, r);
	if (text != MAP_FAILED)
		munmap(text, r->len);
}

static void finish_worker(const struct ranks_work *w, size_t i, struct worker *x)
{
	struct ranks_result r = { .rc = EXIT_UNREADABLE };
	char *error;
	int status = 0;

	while (x->pid > 0 && waitpid(x->pid, &status, 0) < 0 && errno == EINTR)
		;
	if (x->pid < 0)
		error = need_text(strerror(x->why));
	else if (WIFSIGNALED(status))
		error = ended_by(status);
	else
		error = last_words(x->err);
	if (x->pid > 0 && WIFEXITED(status)) {
		r.rc = WEXITSTATUS(status) & ~A_PART;
		r.a_part = WEXITSTATUS(status) & A_PART;
	}
	r.error = error;
	pass_on_result(w, i, &r, WIFSIGNALED(status) ? NULL : x->out);
	free(error);
	if (x->out)
		fclose(x->out);
	if (x->err)
		fclose(x->err);
}

void ranks_work(const struct ranks_work *w)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	size_t most = cpus < 1 ? 1 : cpus < AT_ONCE ? (size_t)cpus : AT_ONCE, started = 0;
	struct worker workers[AT_ONCE];

	for (size_t i = 0; i < w->count; i++) {
		for (; started < w->count && started < i + most; started++)
			start_worker(w, started, &workers[started % AT_ONCE]);
		finish_worker(w, i, &workers[i % AT_ONCE]);
		say_progress("ranks", i + 1, w->count);
	}
	say_progress_end();
}
