/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ways in which processes and threads live and end, each a word on the command line. What was
 * allocated and freed is written to the file LOG ("PID alloc ADDRESS SIZE" when it is done, "PID
 * free ADDRESS" before): the truth that the recording is compared with.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern int cudaMalloc(void **p, size_t n) __attribute__((weak));
extern int cudaFree(void *p) __attribute__((weak));
extern void (*toy_escape)(void) __attribute__((weak));

static int (*do_malloc)(void **, size_t);
static int (*do_free)(void *);
static int log_fd = -1;
static const char *self;

static void say(const char *text)
{
	if (write(log_fd, text, strlen(text)) < 0)
		_exit(99);
}

static void *allocate(size_t n)
{
	char line[80];
	void *p = NULL;

	do_malloc(&p, n);
	snprintf(line, sizeof(line), "%d alloc %#lx %zu\n", (int)getpid(), (unsigned long)p, n);
	say(line);
	return p;
}

static void release(void *p)
{
	char line[80];

	snprintf(line, sizeof(line), "%d free %#lx\n", (int)getpid(), (unsigned long)p);
	say(line);
	do_free(p);
}

static void *churn(void *arg)
{
	void *kept[8] = { 0 };
	long rounds = (long)(intptr_t)arg;

	for (long i = 0; i < rounds; i++) {
		if (kept[i % 8])
			release(kept[i % 8]);
		kept[i % 8] = allocate(512 + (size_t)i);
	}
	return NULL;
}

static void *one(void *arg)
{
	allocate(100);
	return arg;
}

static void in_threads(int count, void *(*fn)(void *), void *arg)
{
	pthread_t t[128];

	for (int i = 0; i < count; i++)
		pthread_create(&t[i], NULL, fn, arg);
	for (int i = 0; i < count; i++)
		pthread_join(t[i], NULL);
}

static void mode_plain(void)
{
	release(allocate(1000));
	allocate(2000);
}

static int count_of(int usual)
{
	return getenv("COUNT") ? atoi(getenv("COUNT")) : usual;
}

static void mode_threads(void)
{
	in_threads(count_of(16), churn, (void *)(intptr_t)(16000 / count_of(16)));
}

static void mode_visitors(void)
{
	for (int i = 0; i < count_of(20); i++)
		in_threads(50, one, NULL);
}

static void wait_for(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* A child that does nothing, one that records, one of a child; one made behind pthread_atfork's
 * back. */
static void mode_fork(void)
{
	pid_t pid;

	allocate(1);
	if ((pid = fork()) == 0)
		exit(0);
	wait_for(pid);
	if ((pid = fork()) == 0) {
		allocate(2);
		if ((pid = fork()) == 0) {
			in_threads(4, one, NULL);
			exit(0);
		}
		wait_for(pid);
		exit(0);
	}
	wait_for(pid);
	allocate(3);
}

static void mode_rawfork(void)
{
	pid_t pid;

	allocate(1);
	pid = (pid_t)syscall(SYS_fork);
	if (pid == 0) {
		allocate(2);
		exit(0);
	}
	wait_for(pid);
	allocate(3);
}

/* fork while other threads record */
static void mode_forkstorm(void)
{
	pthread_t t[4];
	pid_t pid;

	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, churn, (void *)(intptr_t)2000);
	for (int i = 0; i < 20; i++) {
		if ((pid = fork()) == 0) {
			if (i % 4 == 0)
				allocate(5);
			exit(0);
		}
		wait_for(pid);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

static void mode_spawn(void)
{
	char *argv[] = { "true", NULL };
	pid_t pid;

	allocate(1);
	if (!posix_spawnp(&pid, "true", NULL, NULL, argv, NULL))
		wait_for(pid);
	if ((pid = vfork()) == 0) {
		execlp("true", "true", (char *)NULL);
		_exit(1);
	}
	wait_for(pid);
	if (system("true"))
		_exit(3);
	allocate(2);
}

static void mode_exec(void)
{
	allocate(1);
	execl(self, self, "plain", (char *)NULL);
}

/* Every way to become another program. */
static void mode_execs(void)
{
	char *argv[] = { (char *)self, "plain", NULL };
	extern char **environ;
	int which = atoi(getenv("WHICH"));

	allocate(1);
	if (which == 0)
		execv(self, argv);
	if (which == 1)
		execve(self, argv, environ);
	if (which == 2)
		execvp(self, argv);
	if (which == 3)
		execvpe(strrchr(self, '/') + 1, argv, environ);
	if (which == 4)
		execl(self, self, "plain", (char *)NULL);
	if (which == 5)
		execlp(strrchr(self, '/') + 1, self, "plain", (char *)NULL);
	if (which == 6)
		execle(self, self, "plain", (char *)NULL, environ);
	if (which == 7)
		fexecve(open(self, O_RDONLY | O_CLOEXEC), argv, environ);
	if (which == 8)
		execveat(AT_FDCWD, self, argv, environ, 0);
	_exit(9);
}

/* Programs that are not there do not end the recording; the program goes on. */
static void mode_exec_fails(void)
{
	char *argv[] = { "x", NULL }, *none[] = { NULL };

	allocate(1);
	if (execv("/nowhere/x", argv) != -1 || errno != ENOENT)
		_exit(9);
	if (execvp("no-such-program-here", argv) != -1 || execve("/etc", argv, none) != -1)
		_exit(9);
	if (execl("/etc/passwd", "x", (char *)NULL) != -1 || errno != EACCES)
		_exit(9);
	allocate(2);
}

/* A file that may be executed and is no program. */
static void mode_exec_bad(void)
{
	char *argv[] = { "x", NULL };

	allocate(1);
	if (execv(getenv("BAD"), argv) != -1 || errno != ENOEXEC)
		_exit(9);
}

static int leave_at_once(void *arg)
{
	(void)arg;
	_exit(3);
}

/* Children that share our memory, and forked ones with nothing of their own, end by _exit. */
static void mode_exits(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	pid_t pid;

	for (volatile int i = 0; i < 2; i++) { /* before anything is recorded, and then */
		if ((pid = vfork()) == 0)
			_exit(3);
		wait_for(pid);
		if ((pid = vfork()) == 0) {
			execl("/nowhere/x", "x", (char *)NULL);
			_Exit(3);
		}
		wait_for(pid);
		wait_for(clone(leave_at_once, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL));
		if ((pid = fork()) == 0)
			_exit(3);
		wait_for(pid);
		allocate(1);
	}
	if ((pid = fork()) == 0) {
		allocate(2);
		_Exit(3);
	}
	wait_for(pid);
	allocate(3);
}

static void leave_in_handler(int signal)
{
	_exit(signal == SIGALRM ? 7 : 8);
}

static void mode_exit_in_handler(void)
{
	pthread_t t;

	allocate(1); /* the recording has begun: before that a signal leaves an empty file */
	signal(SIGALRM, leave_in_handler);
	ualarm(30000, 0);
	for (int i = 0; i < 3; i++)
		pthread_create(&t, NULL, churn, (void *)(intptr_t)100000000);
	churn((void *)(intptr_t)100000000);
}

static void *leave_thread_7(void *arg)
{
	(void)arg;
	_exit(7);
}

/* All at once. */
static void mode_exit_race(void)
{
	in_threads(4, churn, (void *)(intptr_t)300);
	in_threads(8, leave_thread_7, NULL);
}

static void mode_late(void)
{
	void *lib = dlopen(getenv("TOY_CUDART"), RTLD_NOW | RTLD_LOCAL);

	if (!lib)
		_exit(4);
	do_malloc = (int (*)(void **, size_t))dlsym(lib, "cudaMalloc");
	do_free = (int (*)(void *))dlsym(lib, "cudaFree");
	mode_plain();
}

static void mode__exit(void)
{
	in_threads(4, churn, (void *)(intptr_t)300);
	_exit(7);
}

static void mode_quick_exit(void)
{
	mode_plain();
	quick_exit(7);
}

static void mode_abort(void)
{
	signal(SIGABRT, SIG_DFL);
	mode_plain();
	abort();
}

static void mode_kill(void)
{
	in_threads(4, churn, (void *)(intptr_t)300);
	if (count_of(SIGKILL) == SIGSEGV)
		*(volatile int *)(uintptr_t)count_of(0) = 1;
	kill(getpid(), SIGKILL);
}

/* Long enough that its files can be meddled with. */
static void mode_busy(void)
{
	for (int i = 0; i < 20; i++) {
		in_threads(4, churn, (void *)(intptr_t)300);
		usleep(20000);
	}
}

/* To be killed. */
static void mode_churn(void)
{
	in_threads(4, churn, (void *)(intptr_t)100000000);
}

/* exit() while others record */
static void mode_busy_exit(void)
{
	pthread_t t;

	for (int i = 0; i < 4; i++)
		pthread_create(&t, NULL, churn, (void *)(intptr_t)100000000);
	usleep(50000);
	exit(7);
}

static void mode_close_all(void)
{
	allocate(1);
	for (int fd = 3; fd < 1024; fd++)
		if (fd != log_fd)
			close(fd);
	for (int fd = 0; fd < 1000; fd++)
		if (open("/dev/null", O_RDWR) < 0)
			break;
	churn((void *)(intptr_t)10000);
}

static void in_handler(int signal)
{
	void *p;

	(void)signal;
	do_malloc(&p, 7);
	do_free(p);
}

/* A handler that allocates too, at any moment of the thread's work. */
static void mode_signals(void)
{
	struct sigaction sa = { .sa_handler = in_handler, .sa_flags = SA_RESTART };
	struct itimerspec every = { { 0, 200000 }, { 0, 200000 } };
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	timer_t timer;

	sigaction(SIGUSR1, &sa, NULL);
	if (timer_create(CLOCK_MONOTONIC, &ev, &timer) || timer_settime(timer, 0, &every, NULL))
		_exit(5);
	churn((void *)(intptr_t)20000);
}

static jmp_buf back;

static void jump(void)
{
	longjmp(back, 1);
}

static void *leave_thread(void *arg)
{
	allocate(3);
	do_malloc((void **)arg, 13);
	return NULL;
}

static void end_thread(void)
{
	pthread_exit(NULL);
}

/* The real call never returns: by longjmp, by the end of its thread. */
static void mode_escape(void)
{
	void *p;

	allocate(1);
	toy_escape = jump;
	if (!setjmp(back))
		do_malloc(&p, 13);
	do_malloc(&p, 13 * 512); /* from where the one before was called */
	allocate(2);
	toy_escape = end_thread;
	in_threads(3, leave_thread, &p);
	allocate(4);
}

static void mode_none(void)
{
}

static const struct {
	const char *name;
	void (*run)(void);
} modes[] = {
	{ "plain", mode_plain },
	{ "threads", mode_threads },
	{ "visitors", mode_visitors },
	{ "fork", mode_fork },
	{ "rawfork", mode_rawfork },
	{ "forkstorm", mode_forkstorm },
	{ "spawn", mode_spawn },
	{ "exec", mode_exec },
	{ "execs", mode_execs },
	{ "exec_fails", mode_exec_fails },
	{ "exec_bad", mode_exec_bad },
	{ "exits", mode_exits },
	{ "exit_in_handler", mode_exit_in_handler },
	{ "exit_race", mode_exit_race },
	{ "late", mode_late },
	{ "_exit", mode__exit },
	{ "quick_exit", mode_quick_exit },
	{ "abort", mode_abort },
	{ "kill", mode_kill },
	{ "busy_exit", mode_busy_exit },
	{ "close_all", mode_close_all },
	{ "signals", mode_signals },
	{ "escape", mode_escape },
	{ "none", mode_none },
	{ "busy", mode_busy },
	{ "churn", mode_churn },
};

int main(int argc, char **argv)
{
	self = argv[0];
	do_malloc = cudaMalloc;
	do_free = cudaFree;
	log_fd = open(getenv("LOG"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (argc == 2 && !strcmp(argv[1], modes[i].name)) {
			modes[i].run();
			printf("done\n");
			return 0;
		}
	}
	return 2;
}
