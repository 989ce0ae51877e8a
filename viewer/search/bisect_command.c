/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's command at another commit. Files of the repository are taken from that commit,
 * under the name that they had then. Files in the user's tree that are in no commit (an
 * interpreter, data) are used where they are.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../base/bytes.h"
#include "../base/need.h"
#include "bisect.h"
#include "git.h"

static bool is_there(const char *path)
{
	struct stat st;

	return !lstat(path, &st);
}

static bool commit_has(const struct bisect *b, const char *commit, const char *path)
{
	char name[2 * PATH_MAX];

	snprintf(name, sizeof(name), "%s:%s", commit, path);
	return GIT_DOES(b->top, "cat-file", "-e", name);
}

/* Reads lines "R100\told\tnew" and returns the new name of a path; to be freed, or NULL. */
static char *renamed(const struct bisect *b, const char *from, const char *to, const char *path)
{
	char *text = GIT_ASK(b->top, NULL, "diff", "-M", "--diff-filter=R", "--name-status",
			     "--no-color", from, to);
	char *found = NULL, *save = NULL;

	for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line && !found;
	     line = strtok_r(NULL, "\n", &save)) {
		char *old = strchr(line, '\t'), *new = old ? strchr(old + 1, '\t') : NULL;

		if (!new)
			continue;
		*new ++ = 0;
		if (!strcmp(old + 1, path))
			found = need_copy(new, strlen(new));
	}
	free(text);
	return found;
}

/* The path within the repository of an argument; false: it is no path there. */
static bool within(const struct bisect *b, const char *word, char path[PATH_MAX])
{
	size_t top = strlen(b->top);
	int n;

	if (word[0] == '/') {
		if (strncmp(word, b->top, top) || word[top] != '/')
			return false;
		n = snprintf(path, PATH_MAX, "%s", word + top + 1);
	} else {
		while (!strncmp(word, "./", 2))
			word += 2;
		n = snprintf(path, PATH_MAX, "%s%s", b->prefix, word);
	}
	return n > 0 && n < PATH_MAX && !strstr(path, "../");
}

static char *in_tree(const struct bisect *b, const char *path)
{
	char text[2 * PATH_MAX];

	snprintf(text, sizeof(text), "%s/%s", b->tree, path);
	return need_copy(text, strlen(text));
}

/* A word that names a file of the repository, as it was at that commit. */
static char *tracked(const struct bisect *b, const char *commit, const char *end, const char *word,
		     const char *path)
{
	char *now, *text;

	if (commit_has(b, commit, path))
		return word[0] == '/' ? in_tree(b, path) : need_copy(word, strlen(word));
	now = renamed(b, end, commit, path);
	if (!now)
		return need_copy(word, strlen(word));
	text = in_tree(b, now);
	free(now);
	return text;
}

static char *translate(const struct bisect *b, const char *commit, const char *word, bool first)
{
	char path[PATH_MAX], here[2 * PATH_MAX];

	/* A program by its name alone is looked for in PATH; options are no paths. */
	if (!*word || *word == '-' || (first && !strchr(word, '/')) || !within(b, word, path))
		return need_copy(word, strlen(word));
	if (commit_has(b, b->bad_id, path))
		return tracked(b, commit, b->bad_id, word, path);
	if (commit_has(b, b->good_id, path))
		return tracked(b, commit, b->good_id, word, path);
	snprintf(here, sizeof(here), "%s/%s", b->cwd, word);
	if (word[0] != '/' && is_there(here))
		return need_copy(here, strlen(here));
	return need_copy(word, strlen(word));
}

/* Is it a file, and in none of the two commits? Those of commits differ from commit to commit. */
static bool is_outside(const struct bisect *b, const char *word)
{
	char path[PATH_MAX];

	return *word && *word != '-' && is_there(word) &&
	       !(within(b, word, path) &&
		 (commit_has(b, b->bad_id, path) || commit_has(b, b->good_id, path)));
}

uint64_t bisect_fingerprint(const struct bisect *b)
{
	struct trial any = { .card = &b->card };
	size_t n = need_count(b->plan.command), count = 0;
	const char **files = need_new((n + 1) * sizeof(*files));
	uint64_t h;

	for (size_t i = 0; i < n; i++)
		if (is_outside(b, b->plan.command[i]))
			files[count++] = b->plan.command[i];
	h = trial_hash(&any, &b->plan, files);
	free(files);
	return bytes_hash(h, b->prefix, strlen(b->prefix));
}

char **bisect_command(const struct bisect *b, const char *commit)
{
	size_t n = need_count(b->plan.command);
	char **out = need_new((n + 1) * sizeof(*out));

	for (size_t i = 0; i < n; i++)
		out[i] = translate(b, commit, b->plan.command[i], !i);
	return out;
}
