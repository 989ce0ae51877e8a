/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submodules of the commit that is measured, at the commit that it names: from the user's own
 * clones of them, which are only read, without the network. One that the user does not have stays
 * empty, as in the user's tree; so does a commit of it that was never fetched.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bisect.h"
#include "git.h"

#define GITLINK "160000 commit "
#define DEPTH	8

static bool has_repository(const char *folder)
{
	char path[PATH_MAX + 8];

	snprintf(path, sizeof(path), "%s/.git", folder);
	return !access(path, F_OK);
}

static bool fill(const char *from, const char *into, const char *commit)
{
	if (!has_repository(into) &&
	    !GIT_DOES(from, "clone", "--quiet", "--shared", "--no-checkout", from, into))
		return false;
	return GIT_DOES(into, "checkout", "--force", "--quiet", "--detach", commit);
}

/* A line of `git ls-tree`: mode, type, id, a tab, the path. */
static bool one(const char *top, const char *tree, char *line, int depth)
{
	char from[PATH_MAX], into[PATH_MAX];
	char *id = line + strlen(GITLINK), *path = strchr(line, '\t');

	if (strncmp(line, GITLINK, strlen(GITLINK)) || !path)
		return true;
	*path++ = 0;
	snprintf(from, sizeof(from), "%s/%s", top, path);
	snprintf(into, sizeof(into), "%s/%s", tree, path);
	if (!has_repository(from))
		return true;
	return fill(from, into, id) && submodules_fill(from, into, depth + 1);
}

/* `git bisect run` sets them for the tree itself. */
static void forget_the_tree(void)
{
	static const char *const names[] = { "GIT_DIR",	       "GIT_WORK_TREE",
					     "GIT_INDEX_FILE", "GIT_COMMON_DIR",
					     "GIT_PREFIX",     "GIT_OBJECT_DIRECTORY" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
}

bool submodules_fill(const char *top, const char *tree, int depth)
{
	char *text, *save = NULL;
	bool fine = true;

	if (depth > DEPTH)
		return true;
	forget_the_tree();
	text = GIT_ASK(tree, NULL, "ls-tree", "-r", "HEAD");
	for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line && fine;
	     line = strtok_r(NULL, "\n", &save))
		fine = one(top, tree, line, depth);
	free(text);
	return fine;
}
