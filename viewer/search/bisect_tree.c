/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worktree in which commits are measured, in a folder of the search's own; the user's tree is
 * only read. What was measured lies beside it, a run for each commit under the commit's id.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/bytes.h"
#include "../base/say.h"
#include "bisect.h"
#include "folder.h"
#include "git.h"

static int ask_into(const char *folder, char *into, size_t room, const char *const *words)
{
	char *why = NULL, *text = git_ask(folder, &why, words);
	int rc = 0;

	if (text)
		snprintf(into, room, "%s", text);
	else
		rc = say_error(EXIT_UNREADABLE, "git: %s", why);
	free(text);
	free(why);
	return rc;
}
#define ASK_INTO(folder, into, ...) \
	ask_into(folder, into, sizeof(into), (const char *const[]){ __VA_ARGS__, NULL })

static int find_commit(const char *name, char *id, size_t room)
{
	char word[512];
	const char *const words[] = { "rev-parse",	  "--verify", "--quiet",
				      "--end-of-options", word,	      NULL };

	snprintf(word, sizeof(word), "%.400s^{commit}", name);
	return git_into(NULL, id, room, words)
		       ? 0
		       : say_error(EXIT_USAGE, "%s is no commit of this repository", name);
}

/* By its whole name: git runs this in another folder. */
static int make_folder(struct bisect *b)
{
	char given[PATH_MAX];
	int rc = folder_make(b->plan.folder, "bisect", &b->temporary);

	snprintf(given, sizeof(given), "%s", b->plan.folder);
	if (!rc && !b->temporary && !realpath(given, b->plan.folder))
		rc = say_error(EXIT_UNREADABLE, "%s cannot be made: %s", given, strerror(errno));
	return rc;
}

static int make_tree(struct bisect *b)
{
	char *why = NULL, *text;

	snprintf(b->tree, sizeof(b->tree), "%.3900s/tree.%d", b->plan.folder, (int)getpid());
	b->has_tree = true;
	text = GIT_ASK(b->top, &why, "worktree", "add", "--detach", "--quiet", b->tree, b->bad_id);
	if (!text) {
		int rc = say_error(EXIT_UNREADABLE, "no worktree can be made: %s", why);

		free(why);
		return rc;
	}
	free(text);
	return 0;
}

int bisect_open(struct bisect *b)
{
	int rc = ASK_INTO(NULL, b->top, "rev-parse", "--show-toplevel");

	if (!rc)
		rc = ASK_INTO(NULL, b->prefix, "rev-parse", "--show-prefix");
	if (!rc && !getcwd(b->cwd, sizeof(b->cwd)))
		rc = say_error(EXIT_UNREADABLE, "this folder is gone");
	if (!rc)
		rc = find_commit(b->good, b->good_id, sizeof(b->good_id));
	if (!rc)
		rc = find_commit(b->bad, b->bad_id, sizeof(b->bad_id));
	if (!rc && !strcmp(b->good_id, b->bad_id))
		rc = say_error(EXIT_USAGE, "%s and %s are the same commit", b->good, b->bad);
	if (!rc)
		rc = make_folder(b);
	b->fingerprint = bisect_fingerprint(b);
	return rc ? rc : make_tree(b);
}

void bisect_close(struct bisect *b)
{
	if (b->has_tree) {
		GIT_DOES(b->top, "worktree", "remove", "--force", b->tree);
		GIT_DOES(b->top, "worktree", "prune");
	}
	if (b->temporary && b->plan.folder[0])
		folder_remove(b->plan.folder);
}

/* ---- a commit ---- */

static void commit_trial_init(const struct bisect *b, struct trial *t, const char *commit)
{
	*t = (struct trial){ .card = &b->card };
	snprintf(t->name, sizeof(t->name), "%.12s", commit);
	snprintf(t->fingerprint, sizeof(t->fingerprint), "%016" PRIx64,
		 bytes_hash(b->fingerprint, commit, strlen(commit)));
}

/* The folder that the user was in may not be there yet. */
static void enter(const struct bisect *b)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", b->tree, b->prefix);
	if (chdir(path) && chdir(b->tree))
		_exit(EXIT_UNREADABLE);
}

static volatile pid_t worker;

void bisect_interrupt(void)
{
	if (worker > 0)
		kill(worker, SIGTERM);
	git_interrupt(SIGTERM);
}

static int run(const struct bisect *b, struct trial *t, const char *commit)
{
	struct plan plan = b->plan;
	pid_t pid;
	int status = 0;

	plan.command = bisect_command(b, commit);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
		enter(b);
		_exit(trial_run(t, &plan));
	}
	worker = pid;
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	worker = 0;
	vary_command_free((char **)plan.command);
	return pid < 0 || !WIFEXITED(status) ? EXIT_UNREADABLE : WEXITSTATUS(status);
}

int bisect_measure(struct bisect *b, struct trial *t, const char *commit)
{
	char head[64] = "";
	int rc;

	commit_trial_init(b, t, commit);
	if (trial_read(t, &b->plan))
		return 0;
	if (ASK_INTO(b->tree, head, "rev-parse", "HEAD"))
		return EXIT_UNREADABLE;
	if (strcmp(head, commit) &&
	    !GIT_DOES(b->tree, "checkout", "--force", "--quiet", "--detach", commit))
		return say_error(EXIT_UNREADABLE, "git cannot check out %.12s", commit);
	/* Without one of them the program fails, and the commit is skipped. */
	submodules_fill(b->top, b->tree, 0);
	rc = run(b, t, commit);
	return rc ? rc : trial_read(t, &b->plan) ? 0 : EXIT_UNREADABLE;
}
