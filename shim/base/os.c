/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operating system, as the hook path may use it. Any thread; never allocates, prints or waits
 * without a limit.
 */
#include "os.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t mapped;

static uint32_t forbidden, forbidden_ours;
static __thread bool is_ours __attribute__((tls_model("initial-exec")));

bool os_may(uint32_t abilities)
{
	return !(__atomic_load_n(is_ours ? &forbidden_ours : &forbidden, __ATOMIC_RELAXED) &
		 abilities);
}

/* A confined thread passes its filter on to those it starts, so all but ours count as confined. */
void os_forbid(uint32_t abilities, bool our_thread_too)
{
	__atomic_or_fetch(&forbidden, abilities, __ATOMIC_RELAXED);
	if (our_thread_too)
		__atomic_or_fetch(&forbidden_ours, abilities, __ATOMIC_RELAXED);
}

void os_is_our_thread(void)
{
	is_ours = true;
}

void os_clock(clockid_t clock, struct timespec *now)
{
	if (os_may(OS_COUNTER))
		clock_gettime(clock, now);
	else
		syscall(SYS_clock_gettime, clock, now);
}

uint64_t os_mapped(void)
{
	return __atomic_load_n(&mapped, __ATOMIC_RELAXED);
}

void *os_map(size_t bytes)
{
	void *p = MAP_FAILED;

	if (os_may(OS_MEMORY))
		p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	__atomic_add_fetch(&mapped, bytes, __ATOMIC_RELAXED);
	return p;
}

/*
 * Unmaps whole pages, as the kernel does. The thread sanitizer would keep its state of a partial
 * page, and take the next object that the loader maps there for the old memory.
 */
void os_unmap(void *memory, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (!memory || !os_may(OS_MEMORY))
		return;
	munmap(memory, (bytes + page - 1) & ~(page - 1));
	__atomic_sub_fetch(&mapped, bytes, __ATOMIC_RELAXED);
}

uint32_t os_tid(void)
{
	return os_may(OS_ID) ? (uint32_t)syscall(SYS_gettid) : 0;
}

bool os_thread_is_here(uint32_t tid)
{
	return !os_may(OS_THREADS) || !syscall(SYS_tgkill, getpid(), tid, 0);
}

bool os_write_zeros(int fd, off_t offset, size_t bytes)
{
	static const char zeros[4096];

	while (bytes) {
		ssize_t n =
			pwrite(fd, zeros, bytes < sizeof(zeros) ? bytes : sizeof(zeros), offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		offset += n;
		bytes -= (size_t)n;
	}
	return true;
}

bool os_may_grow_to(uint64_t size)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY ||
	       size <= limit.rlim_cur;
}

void os_block_signals(sigset_t *before)
{
	static const int of_an_instruction[] = { SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS };
	sigset_t most;

	sigfillset(&most);
	for (unsigned i = 0; i < sizeof(of_an_instruction) / sizeof(of_an_instruction[0]); i++)
		sigdelset(&most, of_an_instruction[i]);
	if (os_may(OS_SIGNALS))
		pthread_sigmask(SIG_SETMASK, &most, before);
	else
		sigfillset(before);
}

void os_unblock_signals(const sigset_t *before)
{
	if (os_may(OS_SIGNALS))
		pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* Pending signals that our own writes can raise: past RLIMIT_FSIZE, or into an unread pipe. */
static void raised(sigset_t *set)
{
	sigset_t pending;

	sigemptyset(set);
	if (!os_may(OS_PENDING) || sigpending(&pending))
		return;
	if (sigismember(&pending, SIGXFSZ) == 1)
		sigaddset(set, SIGXFSZ);
	if (sigismember(&pending, SIGPIPE) == 1)
		sigaddset(set, SIGPIPE);
}

void os_calm_begin(struct os_calm *c)
{
	int saved = errno;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &c->cancel);
	os_block_signals(&c->mask);
	raised(&c->pending);
	errno = saved;
}

void os_calm_end(const struct os_calm *c)
{
	static const int ours[] = { SIGXFSZ, SIGPIPE };
	const struct timespec none = { 0, 0 };
	int saved = errno, ignored;
	sigset_t now, one;

	raised(&now);
	for (unsigned i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		if (sigismember(&now, ours[i]) != 1 || sigismember(&c->pending, ours[i]) == 1)
			continue;
		sigemptyset(&one);
		sigaddset(&one, ours[i]);
		sigtimedwait(&one, NULL, &none);
	}
	os_unblock_signals(&c->mask);
	pthread_setcancelstate(c->cancel, &ignored);
	errno = saved;
}

void os_futex_wait(uint32_t *word, uint32_t seen, uint64_t timeout_ns)
{
	struct timespec ts = { (time_t)(timeout_ns / 1000000000u),
			       (long)(timeout_ns % 1000000000u) };

	if (os_may(OS_FUTEX))
		syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, &ts, NULL, 0);
}

void os_futex_wake(uint32_t *word)
{
	if (os_may(OS_FUTEX))
		syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 0x7fffffff, NULL, NULL, 0);
}
