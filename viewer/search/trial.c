/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts the program as `gpumemtrace run --sim` does, in its own process group, and checks
 * periodically whether its peak is stable. Then it ends the program: SIGTERM, and after two seconds
 * SIGKILL, also for processes in other groups (launchers start such). Runs in a process of its own;
 * the recording survives either signal.
 */
#include "trial.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/need.h"
#include "../base/now.h"
#include "../base/say.h"
#include "../stacks/owners.h"
#include "trial_watch.h"

#define LOOK_MS	 100
#define LEAVE_MS 2000 /* between the two signals */
#define RANKS	 16

/* Launchers, which start ranks themselves. */
static const char *const launchers[] = { "torchrun",
					 "torch.distributed.run",
					 "torch.distributed.launch",
					 "accelerate",
					 "deepspeed",
					 "mpirun",
					 "mpiexec",
					 "srun",
					 "horovodrun" };

const char *trial_launcher(char *const *command)
{
	for (size_t i = 0; i < 4 && command[i]; i++) {
		const char *name = owners_base(command[i]);

		for (size_t k = 0; k < sizeof(launchers) / sizeof(launchers[0]); k++)
			if (!strcmp(name, launchers[k]))
				return name;
	}
	return NULL;
}

/* ---- the program ---- */

static int open_log(const struct trial *t, const struct plan *p)
{
	char path[PATH_MAX];

	trial_path(t, p, ".log", path);
	return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
}

static void redirect(const struct trial *t, const struct plan *p)
{
	int in = open("/dev/null", O_RDONLY), out = open_log(t, p);

	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
}

static void set_environment(const struct trial *t, const struct plan *p)
{
	char path[PATH_MAX];

	trial_path(t, p, ".usage", path);
	setenv("SIMGPU_USAGE", path, 1);
	if (p->threads && !getenv("OMP_NUM_THREADS"))
		world_set("OMP_NUM_THREADS", p->threads);
	vary_environment(&p->varied, &t->setting);
}

/* Devices visible to each process: all of the node's, or one per rank. */
static long devices(const struct world *w)
{
	return !w->size ? 1 : w->count ? w->node : w->size;
}

static void become(const struct trial *t, const struct plan *p, pid_t group)
{
	char **command = vary_command(&p->varied, &t->setting, p->command);
	char sim[128], recording[PATH_MAX];
	size_t n = need_count(command);
	char **argv = need_new((n + 8) * sizeof(*argv));

	setpgid(0, group);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	redirect(t, p);
	set_environment(t, p);
	trial_path(t, p, ".gmt", recording);
	snprintf(sim, sizeof(sim), "%s,%ld", t->card->name, devices(&p->world));
	argv[0] = (char *)"gpumemtrace";
	argv[1] = (char *)"run";
	argv[2] = (char *)"--sim";
	argv[3] = sim;
	argv[4] = (char *)"-o";
	argv[5] = recording;
	argv[6] = (char *)"--";
	memcpy(argv + 7, command, n * sizeof(*argv));
	execv("/proc/self/exe", argv);
	_exit(126);
}

/* Makes an empty file. */
static void make_file(const struct trial *t, const struct plan *p, const char *ending,
		      char path[PATH_MAX])
{
	int fd;

	trial_path(t, p, ending, path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd >= 0)
		close(fd);
}

static void clear_files(const struct trial *t, const struct plan *p)
{
	static const char *const endings[] = { ".log", ".usage", ".json", ".html" };
	char path[PATH_MAX];
	char **old = trial_recordings(t, p);

	for (char **o = old; *o; o++) {
		snprintf(path, sizeof(path), "%s.live", *o);
		unlink(path);
		unlink(*o);
	}
	vary_command_free(old);
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		trial_path(t, p, endings[i], path);
		unlink(path);
	}
	make_file(t, p, ".usage", path);
}

/* The processes of one run, all in the first one's group. */
struct group {
	pid_t pids[RANKS], first;
	size_t count, left;
	int code; /* the first that was not 0 */
	struct stand_in stand_in;
};

/* How many times the command is started here. */
static long copies_of(const struct plan *p)
{
	if (p->world.count)
		return (long)p->world.count;
	return p->world.size && !trial_launcher(p->command) ? p->world.size : 1;
}

static bool start_stand_in(struct stand_in *in, const struct trial *t, const struct plan *p)
{
	int log = open_log(t, p);
	bool started = stand_in_start(in, &p->world, p->python, log);

	if (log >= 0)
		close(log);
	return started;
}

static bool start(struct group *g, const struct trial *t, const struct plan *p)
{
	long copies = copies_of(p);
	int port = 20000 + (int)(getpid() % 30000);
	char messages[PATH_MAX];

	*g = (struct group){ .count = (size_t)copies };
	if (p->world.count && !start_stand_in(&g->stand_in, t, p))
		return false;
	if (p->world.count)
		make_file(t, p, ".messages", messages);
	for (long i = 0; i < copies; i++) {
		pid_t pid;

		fflush(NULL);
		pid = fork();
		if (pid == 0) {
			if (p->world.count)
				world_environment(&p->world, (size_t)i, g->stand_in.ports[i],
						  messages);
			else if (copies > 1)
				world_set_rank(i, copies, copies, port);
			become(t, p, g->first);
		}
		if (pid < 0)
			return false;
		setpgid(pid, g->first ? g->first : pid);
		g->first = g->first ? g->first : pid;
		g->pids[i] = pid;
		g->left++;
	}
	return true;
}

static void reap(struct group *g)
{
	int status;
	pid_t pid;

	while (g->left && (pid = waitpid(-1, &status, WNOHANG)) > 0) {
		int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);

		for (size_t i = 0; i < g->count; i++) {
			if (g->pids[i] != pid)
				continue;
			g->left--;
			g->code = g->code ? g->code : code;
		}
	}
}

static void rest(unsigned ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&t, NULL);
}

static volatile sig_atomic_t stopped;

static void end(struct group *g)
{
	uint64_t start_ms = now_ms();

	kill(-g->first, SIGTERM);
	while (g->left && !stopped && now_ms() - start_ms < LEAVE_MS) {
		rest(10);
		reap(g);
	}
	kill(-g->first, SIGKILL);
	while (g->left) {
		rest(5);
		reap(g);
	}
}

/* A check that took long is followed by a longer pause. */
static void follow(struct group *g, const struct trial *t, const struct plan *p,
		   struct trial_end *how)
{
	struct trial_watch watch;
	uint64_t next, wait = LOOK_MS;
	enum watch_says says = WATCH_GOES_ON;

	trial_watch_begin(&watch, t, p, g->first);
	next = watch.start_ms + LOOK_MS;
	while (says == WATCH_GOES_ON && g->left && !stopped) {
		rest(20);
		reap(g);
		if (g->left && now_ms() >= next) {
			uint64_t before = now_ms();

			says = trial_watch_look(&watch, how);
			if (t->doing)
				trial_watch_doing(&watch, t->doing, TRIAL_DOING);
			wait = 4 * (now_ms() - before);
			next = now_ms() + (wait > LOOK_MS ? wait : LOOK_MS);
		}
		/* The remaining ranks would wait for the failed one. */
		if (g->code && g->left && g->count > 1)
			break;
	}
	reap(g); /* it may have ended by itself during the check */
	trial_watch_end(&watch);
	if (g->left)
		how->early = says != WATCH_GOES_ON;
	else
		*how = (struct trial_end){ 0 };
}

static void be_silent(void)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (null >= 0)
		dup2(null, STDERR_FILENO);
	say_progress_off();
}

static struct group running;

/* Ends the first process at once, and all its descendants after the current check. */
static void stop(int signal)
{
	(void)signal;
	stopped = 1;
	if (!running.first)
		_exit(128 + SIGTERM);
	kill(-running.first, SIGKILL);
}

int trial_run(const struct trial *t, const struct plan *p)
{
	struct trial_end how = { 0 };
	char path[PATH_MAX];
	struct rusage used;
	char **living;
	bool started;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	signal(SIGTERM, stop);
	signal(SIGHUP, stop);
	signal(SIGINT, SIG_IGN);
	clear_files(t, p);
	be_silent();
	started = start(&running, t, p);
	if (started)
		follow(&running, t, p, &how);
	living = trial_living(t, p);
	if (running.first)
		end(&running);
	stand_in_end(&running.stand_in);
	activity_end_all();
	trial_path(t, p, ".messages", path);
	unlink(path);
	if (stopped)
		_exit(128 + SIGTERM);
	trial_complete(living);
	how.code = started ? running.code : 126;
	running.first = 0;
	getrusage(RUSAGE_CHILDREN, &used);
	how.resident = (uint64_t)used.ru_maxrss * 1024;
	return trial_measure(t, p, &how);
}
