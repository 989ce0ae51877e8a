/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operating system, as the hook path may use it. Any thread; never allocates, prints or waits
 * without a limit.
 */
#include "os.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static uint64_t mapped;

uint64_t os_mapped(void)
{
	return __atomic_load_n(&mapped, __ATOMIC_RELAXED);
}

void *os_map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	__atomic_add_fetch(&mapped, bytes, __ATOMIC_RELAXED);
	return p;
}

/*
 * Whole pages, as the kernel unmaps them anyway: of a part of a page the thread sanitizer keeps its
 * notes, and takes the next object that the loader maps there for the memory that was.
 */
void os_unmap(void *memory, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (!memory)
		return;
	munmap(memory, (bytes + page - 1) & ~(page - 1));
	__atomic_sub_fetch(&mapped, bytes, __ATOMIC_RELAXED);
}

uint32_t os_tid(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

bool os_thread_is_here(uint32_t tid)
{
	return !syscall(SYS_tgkill, getpid(), tid, 0);
}

ssize_t os_read_file(const char *path, void *out, size_t size)
{
	size_t have = 0;
	ssize_t n = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return -1;
	while (have < size) {
		n = read(fd, (char *)out + have, size - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		have += (size_t)n;
	}
	close(fd);
	return n < 0 ? -1 : (ssize_t)have;
}

/* Field 22 of /proc/self/stat; the second is a name in brackets. */
uint64_t os_start_ticks(void)
{
	char text[512];
	ssize_t n = os_read_file("/proc/self/stat", text, sizeof(text) - 1);
	const char *p;

	text[n > 0 ? n : 0] = 0;
	p = strrchr(text, ')');
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	return p ? strtoull(p + 1, NULL, 10) : 0;
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

/* For systems that forbid process_vm_readv. */
static bool peek_by_file(void *out, uintptr_t address, size_t bytes)
{
	int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = pread(fd, out, bytes, (off_t)address);
	close(fd);
	return n == (ssize_t)bytes;
}

bool os_peek(void *out, uintptr_t address, size_t bytes)
{
	struct iovec to = { out, bytes };
	struct iovec from = { (void *)address, bytes };
	ssize_t n = process_vm_readv(getpid(), &to, 1, &from, 1, 0);

	if (n < 0 && (errno == ENOSYS || errno == EPERM))
		return peek_by_file(out, address, bytes);
	return n == (ssize_t)bytes;
}

bool os_may_grow_to(uint64_t size)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY ||
	       size <= limit.rlim_cur;
}

void os_block_signals(sigset_t *old)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, old);
}

void os_restore_signals(const sigset_t *old)
{
	const struct timespec none = { 0, 0 };
	sigset_t pending, ours;

	sigemptyset(&ours);
	sigaddset(&ours, SIGXFSZ);
	if (!sigismember(old, SIGXFSZ) && !sigpending(&pending) && sigismember(&pending, SIGXFSZ))
		sigtimedwait(&ours, NULL, &none);
	pthread_sigmask(SIG_SETMASK, old, NULL);
}

void os_futex_wait(uint32_t *word, uint32_t seen, uint64_t timeout_ns)
{
	struct timespec ts = { (time_t)(timeout_ns / 1000000000u),
			       (long)(timeout_ns % 1000000000u) };

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, &ts, NULL, 0);
}

void os_futex_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 0x7fffffff, NULL, NULL, 0);
}
