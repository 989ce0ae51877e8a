/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages for the user on stderr, by one write each. Any thread, also in signal handlers. Never
 * waits and raises no signal. Writes only if descriptor 2 still is the file that it was when the
 * library was loaded, because a daemon might have opened another file there.
 */
#include "say_once.h"

#include "../capture.h"
#include "config.h"
#include "file.h"
#include "os.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

struct gmt_settings gmt_config;

static struct file_id at_load;

void say_setup(void)
{
	file_identify(STDERR_FILENO, &at_load);
}

/* Other processes share the open description of a pipe or terminal, on which blocking depends, so
 * it is opened again. If that is forbidden, the kernel might know how not to wait. */
static void write_anew(const char *line, size_t n)
{
	struct iovec part = { (void *)(uintptr_t)line, n };
	struct file f;
	ssize_t ignored;

	if (file_open(&f, AT_FDCWD, "/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY, 0)) {
		ignored = file_is(f.fd, &at_load) ? write(f.fd, line, n) : 0;
		file_close(&f);
	} else if (errno != ENXIO) { /* a pipe without a reader */
		ignored = pwritev2(STDERR_FILENO, &part, 1, -1, RWF_NOWAIT);
	}
	(void)ignored;
}

static void write_line(const char *line, size_t n)
{
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };
	ssize_t ignored = 0;

	if (S_ISSOCK(at_load.mode))
		ignored = send(STDERR_FILENO, line, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	else if (S_ISFIFO(at_load.mode) || isatty(STDERR_FILENO))
		write_anew(line, n);
	else if (S_ISREG(at_load.mode) || poll(&p, 1, 0) == 1)
		ignored = write(STDERR_FILENO, line, n);
	(void)ignored;
}

void gmt_say(bool *once, const char *text)
{
	char line[640] = "gpumemtrace: ";
	size_t n = strlen(line), len = strnlen(text, sizeof(line) - n - 1);
	struct os_calm calm;

	if (__atomic_exchange_n(once, true, __ATOMIC_RELAXED) || gmt_config.quiet ||
	    !os_may(OS_FILES | OS_WRITE | OS_SIGNALS | OS_PENDING))
		return;
	memcpy(line + n, text, len);
	n += len;
	line[n++] = '\n';
	os_calm_begin(&calm);
	if (file_is(STDERR_FILENO, &at_load))
		write_line(line, n);
	os_calm_end(&calm);
}
