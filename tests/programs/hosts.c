/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that a recorder could break, each a word on the command line: what they do to
 * descriptors, signals, threads, stacks and limits. Finished calls of the runtime are counted in
 * the file MADE, which is mapped, so that the count outlives every end.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

extern int cudaMalloc(void **p, size_t n) __attribute__((weak));
extern int cudaFree(void *p) __attribute__((weak));

static unsigned long *made;

static void *allocate(size_t n)
{
	void *p = NULL;

	cudaMalloc(&p, n);
	__atomic_add_fetch(made, 1, __ATOMIC_SEQ_CST);
	return p;
}

static void release(void *p)
{
	cudaFree(p);
	__atomic_add_fetch(made, 1, __ATOMIC_SEQ_CST);
}

static void pairs(long n)
{
	for (long i = 0; i < n; i++)
		release(allocate(100));
}

static long count_of(long usual)
{
	return getenv("COUNT") ? atol(getenv("COUNT")) : usual;
}

static void paced(void)
{
	for (long i = 0; i < count_of(40); i++) {
		pairs(5);
		usleep(20000);
	}
}

/* ---- stderr, and numbers of files ---- */

static void fill(int fd)
{
	static const char zeros[4096];

	fcntl(fd, F_SETFL, O_NONBLOCK);
	while (write(fd, zeros, sizeof(zeros)) > 0 || write(fd, zeros, 1) > 0)
		;
	fcntl(fd, F_SETFL, 0);
}

/* The library has seen stderr as it is: the program becomes another that has it so from the start.
 */
static void again(const char *mode)
{
	execl("/proc/self/exe", "hosts", mode, (char *)NULL);
	_exit(9);
}

static void mode_stderr_gone(void)
{
	int p[2];

	if (pipe(p) || close(p[0]) || dup2(p[1], 2) != 2)
		_exit(8);
	again("plain");
}

static void mode_stderr_full(void)
{
	int p[2];

	if (pipe(p) || dup2(p[1], 2) != 2)
		_exit(8);
	fill(2);
	alarm(20);
	again("plain");
}

static void mode_stderr_socket(void)
{
	int p[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, p) || dup2(p[1], 2) != 2)
		_exit(8);
	fill(2);
	alarm(20);
	again("plain");
}

static void mode_stderr_limited(void)
{
	struct rlimit none = { 4096, 4096 };
	int fd = open("full.txt", O_RDWR | O_CREAT | O_TRUNC, 0600);

	if (dup2(fd, 2) != 2 || ftruncate(2, 4096) || lseek(2, 4096, SEEK_SET) != 4096)
		_exit(8);
	if (setrlimit(RLIMIT_FSIZE, &none))
		_exit(8);
	again("plain");
}

static void mode_plain(void)
{
	paced();
}

/* A daemon: closes all, and its own files get the numbers. */
static void own_files(int first)
{
	char name[20];

	for (int fd = first; fd < 2000; fd++)
		if (fd != 1)
			close(fd);
	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "data%d.db", i);
		if (write(open(name, O_RDWR | O_CREAT | O_TRUNC, 0644), "HEADER\n", 7) != 7)
			_exit(8);
	}
}

static void mode_daemon(void)
{
	pairs(1);
	own_files(0);
	paced();
}

static void mode_daemon_forks(void)
{
	pid_t pid;
	int status;

	pairs(1);
	usleep(100000);
	own_files(3);
	pid = fork();
	if (!pid) {
		for (int fd = 3; fd < 11; fd++)
			if (write(fd, "child\n", 6) != 6)
				_exit(7);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	if (status)
		_exit(7);
}

/* The first file of a program whose standard numbers are closed is number 0. */
static void mode_low_numbers(void)
{
	pairs(1);
	usleep(200000);
	if (open("first.txt", O_RDWR | O_CREAT, 0600) != 0 || open("/dev/null", O_RDWR) != 1)
		_exit(8);
	paced();
}

/* ---- cancellation ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *cancelled(void *arg)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	usleep(100000);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	pthread_mutex_lock(&lock);
	pairs((long)(intptr_t)arg);
	pthread_mutex_unlock(&lock);
	pthread_testcancel();
	return NULL;
}

static void cancel_within(long n)
{
	pthread_t t;

	pthread_create(&t, NULL, cancelled, (void *)(intptr_t)n);
	usleep(20000);
	pthread_cancel(t);
	pthread_join(t, NULL);
	if (pthread_mutex_trylock(&lock))
		_exit(7);
	pthread_mutex_unlock(&lock);
}

static void mode_cancel_first(void)
{
	cancel_within(1);
	pairs(10);
}

static void mode_cancel_later(void)
{
	pairs(1);
	cancel_within(1);
}

/* It needs more than one ring. */
static void mode_cancel_rings(void)
{
	pairs(1);
	cancel_within(20000);
}

static void *one(void *arg)
{
	pairs(1);
	return arg;
}

static void mode_short_threads(void)
{
	pthread_t t[100];

	for (long i = 0; i < count_of(4000) / 100; i++) {
		for (int k = 0; k < 100; k++)
			pthread_create(&t[k], NULL, one, NULL);
		for (int k = 0; k < 100; k++)
			pthread_join(t[k], NULL);
	}
}

/* Others call while the first call starts the recording: its file is there when they have ended,
 * and whoever waits for that has waited in vain, and finds the file that says so. */
static void mode_slow_start(void)
{
	pthread_t t;

	pthread_create(&t, NULL, one, NULL);
	usleep(20000);
	pairs(2000);
	mode_short_threads();
	if (open(getenv("UNTIL"), O_CREAT | O_EXCL | O_WRONLY, 0600) < 0)
		_exit(7);
	pthread_join(t, NULL);
}

/* ---- handlers ---- */

static sigjmp_buf back;
static volatile sig_atomic_t armed, jumps, handled;

static void on_jump(int signal)
{
	(void)signal;
	if (armed) {
		armed = 0;
		jumps++;
		siglongjmp(back, 1);
	}
}

static void on_allocate(int signal)
{
	(void)signal;
	release(allocate(555));
	handled++;
}

static void every(long us, void (*handler)(int), int flags)
{
	struct sigaction act = { .sa_handler = handler, .sa_flags = flags | SA_RESTART };
	struct itimerval it = { { 0, us }, { 0, us } };

	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &it, NULL);
}

static void stop(void)
{
	struct itimerval none = { 0 };

	setitimer(ITIMER_REAL, &none, NULL);
	armed = 0;
}

static __attribute__((noinline)) void deeper(int n)
{
	volatile char room[200];

	room[0] = (char)n;
	if (n)
		deeper(n - 1);
	else
		pairs(50);
	(void)room;
}

static void jump_around(int depth)
{
	while (jumps < count_of(100)) {
		if (!sigsetjmp(back, 1)) {
			armed = 1;
			for (;;)
				depth ? deeper((int)(jumps % depth)) : pairs(1);
		}
	}
	stop();
	pairs(1000);
}

static void mode_jumps(void)
{
	pairs(1);
	every(3000, on_jump, 0);
	jump_around(0);
}

static void mode_jumps_deeper(void)
{
	pairs(1);
	every(3000, on_jump, 0);
	jump_around(30);
}

static void mode_jumps_in_start(void)
{
	every(1000, on_jump, 0);
	jump_around(0);
}

static void small_stack(void)
{
	stack_t s = { .ss_size = 8192 };

	s.ss_sp = mmap(NULL, s.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect((char *)s.ss_sp - 4096, 4096, PROT_NONE);
	sigaltstack(&s, NULL);
}

static void mode_jumps_off_stack(void)
{
	small_stack();
	pairs(1);
	every(3000, on_jump, SA_ONSTACK);
	jump_around(0);
}

static void with_handlers(void)
{
	while (handled < count_of(500))
		pairs(10);
	stop();
}

static void mode_handlers(void)
{
	pairs(1);
	every(1000, on_allocate, 0);
	with_handlers();
}

/* The very first call comes from a handler on a small stack. */
static void mode_handlers_small(void)
{
	small_stack();
	every(1000, on_allocate, SA_ONSTACK);
	while (!handled)
		pause();
	with_handlers();
}

static void on_profile(int signal)
{
	(void)signal;
	handled++;
}

static void mode_profiler(void)
{
	every(1000, on_profile, 0);
	with_handlers();
}

/* ---- what is forbidden or limited afterwards ---- */

#include "hosts_limits.h"

/* setproctitle: a program writes over its environment. */
static void mode_title(void)
{
	extern char **environ;

	for (char **e = environ; *e; e++)
		if (strncmp(*e, "MADE=", 5))
			memset(*e, '/', strlen(*e));
	pairs(10);
}

/* ---- for those who meddle from outside ---- */

/* The most that was allocated at once is left behind the count of calls. */
static void mode_torrent(void)
{
	const char *pause = getenv("PAUSE");
	size_t sizes[64] = { 0 }, now = 0;
	void *p[64] = { 0 };

	for (long i = 0; i < count_of(100000000); i++) {
		long k = rand() % 64;

		if (p[k])
			release(p[k]);
		now -= sizes[k];
		sizes[k] = (size_t)(rand() % 100000000);
		now += sizes[k];
		made[1] = now > made[1] ? now : made[1];
		p[k] = allocate(sizes[k]);
		if (pause && i % 200 == 0)
			usleep(2000);
	}
}

/* Its last thread ends, by itself: so does the process. */
static void mode_main_ends(void)
{
	pairs(100);
	if (write(1, "done\n", 5) != 5)
		_exit(4);
	pthread_exit(NULL);
}

static const struct {
	const char *name;
	void (*run)(void);
} modes[] = {
#define MODE(name)                 \
	{                          \
#name, mode_##name \
	}
	MODE(plain),	       MODE(stderr_gone),   MODE(stderr_full),	  MODE(stderr_socket),
	MODE(stderr_limited),  MODE(daemon),	    MODE(daemon_forks),	  MODE(low_numbers),
	MODE(cancel_first),    MODE(cancel_later),  MODE(cancel_rings),	  MODE(short_threads),
	MODE(slow_start),      MODE(jumps),	    MODE(jumps_deeper),	  MODE(jumps_in_start),
	MODE(jumps_off_stack), MODE(handlers),	    MODE(handlers_small), MODE(profiler),
	MODE(seccomp),	       MODE(address_space), MODE(title),	  MODE(torrent),
	MODE(no_counter),      MODE(strict),	    MODE(main_ends),
#undef MODE
};

int main(int argc, char **argv)
{
	int fd = open(getenv("MADE"), O_RDWR | O_CREAT, 0600);

	if (fd < 0 || ftruncate(fd, 4096))
		return 3;
	made = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	for (unsigned i = 0; argc == 2 && i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(argv[1], modes[i].name))
			continue;
		modes[i].run();
		if (write(1, "done\n", 5) != 5)
			return 4;
		return 0;
	}
	return 2;
}
