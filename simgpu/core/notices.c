/* SPDX-License-Identifier: Apache-2.0
 *
 * Notices to the user who started the program. Each is a line at the end of the file that
 * SIMGPU_NOTES names: a word and its subject. Without that setting nothing is written. Any thread;
 * a process writes each notice once.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "notices.h"

void note_once(bool *said, const char *word, const char *about)
{
	const char *path = getenv("SIMGPU_NOTES");
	char line[4096];
	int fd, n;

	if (__atomic_exchange_n(said, true, __ATOMIC_ACQ_REL) || !path || !*path)
		return;
	n = snprintf(line, sizeof(line), "%s %s\n", word, about);
	if (n <= 0 || n >= (int)sizeof(line))
		return;
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd < 0)
		return;
	if (write(fd, line, (size_t)n) != n)
		fprintf(stderr, "simgpu: %s", line);
	close(fd);
}
