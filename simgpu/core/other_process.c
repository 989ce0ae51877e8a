/* SPDX-License-Identifier: Apache-2.0
 *
 * Other processes of the machine, by /proc: whether one lives, when it began, and the processor
 * time that it and its children have used or waited for. Any thread.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "processes.h"

#define GENERATIONS 6

static size_t file_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	return n > 0 ? (size_t)n : 0;
}

bool process_lives(int pid, uint64_t *used, uint64_t *start)
{
	unsigned long long time[4] = { 0 }, began = 0;
	char path[32], text[1024], *p, state = 0;

	*used = *start = 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (!file_text(path, text, sizeof(text)))
		return !kill(pid, 0) || errno != ESRCH;
	p = strrchr(text, ')'); /* ends the name, which may hold anything */
	if (!p || sscanf(p + 1,
			 " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu %*d "
			 "%*d %*d %*d %llu",
			 &state, &time[0], &time[1], &time[2], &time[3], &began) != 6)
		return false;
	*used = time[0] + time[1] + time[2] + time[3];
	*start = began;
	return !strchr("ZXx", state);
}

/* Ticks for which a thread could have run and had no processor: on a busy machine a process that
 * works gets little. */
static uint64_t thread_waited(int pid, const char *thread)
{
	unsigned long long waited = 0;
	char path[64], text[128];

	snprintf(path, sizeof(path), "/proc/%d/task/%.10s/schedstat", pid, thread);
	if (!file_text(path, text, sizeof(text)) || sscanf(text, "%*u %llu", &waited) != 1)
		return 0;
	return waited / (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK));
}

static uint64_t family_used(int pid, int generations)
{
	uint64_t used, start;
	char path[64], text[4096], *end;
	struct dirent *thread;
	DIR *threads;

	if (!process_lives(pid, &used, &start) || !generations)
		return used;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	threads = opendir(path);
	while (threads && (thread = readdir(threads))) {
		if (thread->d_name[0] == '.')
			continue;
		used += thread_waited(pid, thread->d_name);
		snprintf(path, sizeof(path), "/proc/%d/task/%.10s/children", pid, thread->d_name);
		file_text(path, text, sizeof(text));
		for (char *at = text; *at; at = end) {
			int child = (int)strtol(at, &end, 10);

			if (end == at)
				break;
			used += family_used(child, generations - 1);
		}
	}
	if (threads)
		closedir(threads);
	return used;
}

uint64_t process_family_used(int pid)
{
	return family_used(pid, GENERATIONS);
}
