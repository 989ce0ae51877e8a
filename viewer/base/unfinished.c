/* SPDX-License-Identifier: Apache-2.0 */
/* One thread changes the list. A signal handler reads it, possibly between any two writes. */
#include "unfinished.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "need.h"

#define FILES 64

static struct {
	char *volatile path; /* NULL = free */
	pid_t maker;
} files[FILES];

static void remove_all(int signal)
{
	pid_t self = getpid();

	for (int i = 0; i < FILES; i++)
		if (files[i].path && files[i].maker == self)
			unlink(files[i].path);
	raise(signal); /* SA_RESETHAND: ends the process after the handler returns */
}

static void listen_to_signals(void)
{
	static const int signals[] = {
		SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGXCPU, SIGXFSZ
	};
	struct sigaction action = { .sa_handler = remove_all, .sa_flags = SA_RESETHAND }, old;

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (!sigaction(signals[i], NULL, &old) && old.sa_handler == SIG_DFL)
			sigaction(signals[i], &action, NULL);
}

void unfinished_begin(const char *path)
{
	listen_to_signals();
	for (int i = 0; i < FILES; i++) {
		if (files[i].path)
			continue;
		files[i].maker = getpid();
		files[i].path = need_copy(path, strlen(path));
		return;
	}
}

void unfinished_end(const char *path)
{
	for (int i = 0; i < FILES; i++) {
		char *at = files[i].path;

		if (!at || strcmp(at, path))
			continue;
		files[i].path = NULL;
		free(at);
		return;
	}
}
