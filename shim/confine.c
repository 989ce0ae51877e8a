/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program can forbid itself system calls (seccomp) or reads of the processor's counter
 * (PR_SET_TSC). A forbidden call of ours would then end it. Its requests to the kernel pass here,
 * so the filter is tried with each call that we make, and forbidden calls are no longer made. If
 * our thread could not even write the file, the recording is finished first. Runs on the program's
 * thread, before the filter is in force.
 */
#include "cuda/resolve.h"
#include "recording/session.h"
#include "recording/worker.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MEET_NS 2000000000ull
#define API	__attribute__((visibility("default")))

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#else
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

/* System calls that each of our abilities needs. */
static const struct {
	uint32_t ability;
	int number;
} needs[] = {
	{ OS_FILES, SYS_openat },	   { OS_FILES, SYS_close },
	{ OS_FILES, SYS_statx },	   { OS_FILES, SYS_fcntl },
	{ OS_FILES, SYS_fallocate },	   { OS_FILES, SYS_fstatfs },
	{ OS_FILES, SYS_unlinkat },	   { OS_FILES, SYS_readlinkat },
	{ OS_FILES, SYS_prlimit64 },	   { OS_WRITE, SYS_write },
	{ OS_MEMORY, SYS_mmap },	   { OS_MEMORY, SYS_munmap },
	{ OS_FUTEX, SYS_futex },	   { OS_SIGNALS, SYS_rt_sigprocmask },
	{ OS_PENDING, SYS_rt_sigpending }, { OS_PENDING, SYS_rt_sigtimedwait },
	{ OS_PEEK, SYS_process_vm_readv }, { OS_PEEK, SYS_sigaltstack },
	{ OS_THREADS, SYS_tgkill },	   { OS_THREADS, SYS_prctl },
	{ OS_THREADS, SYS_clone },	   { OS_ID, SYS_gettid },
};

static struct {
	int (*prctl)(int, ...);
	long (*syscall)(long, ...);
} libc;

__attribute__((constructor)) static void confine_load(void)
{
	libc.prctl = (typeof(libc.prctl))resolve_next("prctl");
	libc.syscall = (typeof(libc.syscall))resolve_next("syscall");
}

#define REAL(name) (libc.name ? libc.name : (typeof(libc.name))resolve_next(#name))

/* ---- the filter, as the kernel runs it ---- */

struct machine {
	const struct seccomp_data *data;
	uint32_t a, x, memory[BPF_MEMWORDS];
};

static void load(struct machine *m, const struct sock_filter *f, uint32_t *to)
{
	if (BPF_MODE(f->code) == BPF_ABS && f->k <= sizeof(*m->data) - 4)
		memcpy(to, (const char *)m->data + f->k, 4);
	else if (BPF_MODE(f->code) == BPF_MEM)
		*to = m->memory[f->k % BPF_MEMWORDS];
	else
		*to = BPF_MODE(f->code) == BPF_IMM ? f->k : sizeof(*m->data);
}

static uint32_t compute(uint32_t op, uint32_t a, uint32_t b)
{
	switch (op) {
	case BPF_ADD:
		return a + b;
	case BPF_SUB:
		return a - b;
	case BPF_MUL:
		return a * b;
	case BPF_DIV:
		return b ? a / b : 0;
	case BPF_AND:
		return a & b;
	case BPF_OR:
		return a | b;
	case BPF_XOR:
		return a ^ b;
	case BPF_LSH:
		return a << (b & 31);
	case BPF_RSH:
		return a >> (b & 31);
	default: /* BPF_NEG */
		return -a;
	}
}

static bool holds(uint32_t op, uint32_t a, uint32_t b)
{
	return op == BPF_JEQ ? a == b : op == BPF_JGT ? a > b : op == BPF_JGE ? a >= b : a & b;
}

/* The filter's verdict on this call with arguments of 0; KILL for a malformed filter. */
static uint32_t answer(const struct sock_fprog *p, int number)
{
	const struct seccomp_data data = { .nr = number, .arch = ARCHITECTURE };
	struct machine m = { .data = &data };

	for (size_t i = 0; i < p->len; i++) {
		const struct sock_filter *f = &p->filter[i];
		uint32_t b = BPF_SRC(f->code) == BPF_X ? m.x : f->k;

		switch (BPF_CLASS(f->code)) {
		case BPF_LD:
			load(&m, f, &m.a);
			break;
		case BPF_LDX:
			load(&m, f, &m.x);
			break;
		case BPF_ST:
			m.memory[f->k % BPF_MEMWORDS] = m.a;
			break;
		case BPF_STX:
			m.memory[f->k % BPF_MEMWORDS] = m.x;
			break;
		case BPF_ALU:
			m.a = compute(BPF_OP(f->code), m.a, b);
			break;
		case BPF_JMP:
			if (BPF_OP(f->code) == BPF_JA)
				i += f->k;
			else
				i += holds(BPF_OP(f->code), m.a, b) ? f->jt : f->jf;
			break;
		case BPF_RET:
			return BPF_RVAL(f->code) == BPF_A ? m.a : f->k;
		default:
			*(BPF_MISCOP(f->code) == BPF_TAX ? &m.x : &m.a) =
				BPF_MISCOP(f->code) == BPF_TAX ? m.a : m.x;
		}
	}
	return SECCOMP_RET_KILL_PROCESS;
}

/* The abilities that a filter forbids. NULL: strict mode, which leaves read, write and exit. */
static uint32_t forbidden(const struct sock_fprog *p)
{
	uint32_t all = 0, ret;

	for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
		ret = p ? answer(p, needs[i].number) & SECCOMP_RET_ACTION_FULL : SECCOMP_RET_KILL;
		if (ret != SECCOMP_RET_ALLOW && ret != SECCOMP_RET_LOG)
			all |= needs[i].ability;
	}
	return all;
}

/* Our thread goes on if it may at least write, sleep and map. Libraries test whether the kernel
 * knows filters by a NULL filter or unknown flags, which it rejects: that confines no thread. */
static void confine(const struct sock_fprog *p, bool strict, bool all_threads)
{
	uint32_t f = strict || (p && p->filter) ? forbidden(p) : 0;

	if (strict)
		ticks_forbid(false);
	if (!f)
		return;
	if (all_threads && f & (OS_WRITE | OS_FUTEX | OS_MEMORY))
		session_leave();
	os_forbid(f, all_threads);
	if (all_threads && session_is_here())
		worker_meet(MEET_NS);
}

/* Threads that it starts inherit the setting, so ours does if it has not started yet. */
static void confine_counter(unsigned long how)
{
	if (how != PR_TSC_ENABLE)
		ticks_forbid(!session_is_here());
}

static void confine_by_prctl(unsigned long mode, unsigned long filter)
{
	if (mode == SECCOMP_MODE_FILTER)
		confine((const struct sock_fprog *)filter, false, false);
	else
		confine(NULL, mode == SECCOMP_MODE_STRICT, false);
}

/* ---- the hooks ---- */

API int prctl(int option, ...)
{
	unsigned long a[4];
	va_list list;

	va_start(list, option);
	for (int i = 0; i < 4; i++)
		a[i] = va_arg(list, unsigned long);
	va_end(list);
	if (option == PR_SET_SECCOMP)
		confine_by_prctl(a[0], a[1]);
	else if (option == PR_SET_TSC)
		confine_counter(a[0]);
	return REAL(prctl)(option, a[0], a[1], a[2], a[3]);
}

API long syscall(long number, ...)
{
	long a[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_seccomp && a[0] == SECCOMP_SET_MODE_FILTER)
		confine((const struct sock_fprog *)a[2], false, a[1] & SECCOMP_FILTER_FLAG_TSYNC);
	else if (number == SYS_seccomp && a[0] == SECCOMP_SET_MODE_STRICT)
		confine(NULL, !a[1] && !a[2], false);
	else if (number == SYS_prctl && a[0] == PR_SET_SECCOMP)
		confine_by_prctl((unsigned long)a[1], (unsigned long)a[2]);
	else if (number == SYS_prctl && a[0] == PR_SET_TSC)
		confine_counter((unsigned long)a[1]);
	return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
