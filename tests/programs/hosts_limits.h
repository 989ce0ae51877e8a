/* SPDX-License-Identifier: Apache-2.0 */
/* Modes of hosts.c: a filter of system calls, a limit of the address space. */
#ifndef HOSTS_LIMITS_H
#define HOSTS_LIMITS_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static void confine(int all, unsigned action)
{
#define MAY(n) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, n, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		MAY(SYS_read),
		MAY(SYS_write),
		MAY(SYS_exit_group),
		MAY(SYS_exit),
		MAY(SYS_mmap),
		MAY(SYS_munmap),
		MAY(SYS_brk),
		MAY(SYS_futex),
		MAY(SYS_rt_sigreturn),
		MAY(SYS_rt_sigprocmask),
		MAY(SYS_getpid),
		MAY(SYS_gettid),
		BPF_STMT(BPF_RET | BPF_K, action),
	};
	struct sock_fprog program = { sizeof(f) / sizeof(*f), f };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, all ? SECCOMP_FILTER_FLAG_TSYNC : 0,
		    &program))
		_exit(8);
}

static void confined(int before, int all, unsigned action)
{
	if (before)
		pairs(1);
	confine(all, action);
	pairs(count_of(30000));
}

static void mode_seccomp(void)
{
	const char *how = getenv("HOW");

	confined(strchr(how, 'b') != NULL, strchr(how, 'a') != NULL,
		 strchr(how, 'k') ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM);
}

/* Long enough for the recorder to go by the processor's counter. */
static void with_a_clock(void)
{
	for (int i = 0; i < 40; i++) {
		pairs(1);
		usleep(10000);
	}
}

/* HOW: b = after the first calls, t = in another thread. */
static void *without_counter(void *unused)
{
	if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0))
		_exit(8);
	pairs(10000);
	return unused;
}

static void mode_no_counter(void)
{
	const char *how = getenv("HOW");
	pthread_t thread;

	if (strchr(how, 'b'))
		with_a_clock();
	if (!strchr(how, 't')) {
		without_counter(NULL);
		return;
	}
	pthread_create(&thread, NULL, without_counter, NULL);
	pthread_join(thread, NULL);
	with_a_clock();
}

/* Reads, writes and ends itself: nothing else is allowed. */
static void mode_strict(void)
{
	if (strchr(getenv("HOW"), 'b'))
		with_a_clock();
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0))
		_exit(8);
	pairs(1500); /* what a ring holds: no other can be mapped */
	if (write(1, "done\n", 5) == 5)
		syscall(SYS_exit, 0);
}

static unsigned long address_space(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f || fscanf(f, "%lu", &pages) != 1)
		_exit(8);
	fclose(f);
	return pages * 4096;
}

/* What it has by itself, 200 MB more, and it needs 100 of them. */
static void mode_address_space(void)
{
	unsigned long most = address_space() + (200ul << 20);
	struct rlimit limit = { most, most };

	pairs(10);
	usleep(50000);
	if (setrlimit(RLIMIT_AS, &limit))
		_exit(8);
	if (mmap(NULL, 100 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
	    MAP_FAILED)
		_exit(7);
	pairs(20000);
}

#endif
