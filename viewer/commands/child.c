/* SPDX-License-Identifier: Apache-2.0 */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/say.h"

static const int passed_on[] = { SIGINT,  SIGTERM, SIGHUP,   SIGQUIT,
				 SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT };
#define PASSED (sizeof(passed_on) / sizeof(passed_on[0]))

static volatile pid_t child;
static int ended_by;

/* Signals from the terminal are not passed on, because the child is in the same group and gets them
 * itself. */
static void pass_on_signal(int signal, siginfo_t *info, void *context)
{
	int keep = errno;

	(void)context;
	if (info->si_code != SI_KERNEL && child > 0)
		kill(child, signal);
	errno = keep;
}

static void listen_to_signals(struct sigaction old[PASSED])
{
	struct sigaction action = { .sa_sigaction = pass_on_signal,
				    .sa_flags = SA_SIGINFO | SA_RESTART };

	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < PASSED; i++)
		sigaction(passed_on[i], &action, &old[i]);
}

static void become_child(char **argv, const struct sigaction old[PASSED], const sigset_t *mask,
			 int report)
{
	int why;

	for (size_t i = 0; i < PASSED; i++)
		sigaction(passed_on[i], &old[i], NULL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(argv[0], argv);
	why = errno;
	if (write(report, &why, sizeof(why)) < 0)
		_exit(126);
	_exit(127);
}

static int not_started(const char *name, int why)
{
	return say_error(why == ENOENT ? 127 : 126, "%s cannot be started: %s", name,
			 strerror(why));
}

int child_run(char **argv)
{
	struct sigaction old[PASSED];
	sigset_t all, mask;
	int report[2], why = 0, status = 0;

	if (pipe2(report, O_CLOEXEC))
		return not_started(argv[0], errno);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &mask);
	listen_to_signals(old);
	child = fork();
	if (child == 0)
		become_child(argv, old, &mask, report[1]);
	if (child < 0)
		why = errno;
	sigprocmask(SIG_SETMASK, &mask, NULL);
	close(report[1]);
	if (child > 0 && read(report[0], &why, sizeof(why)) != sizeof(why))
		why = 0;
	close(report[0]);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (why)
		return not_started(argv[0], why);
	ended_by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	return ended_by ? 128 + ended_by : WEXITSTATUS(status);
}

int child_signal(void)
{
	return ended_by;
}
