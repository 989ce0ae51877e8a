/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commit of the script, and of the working directory if that is another repository (a program
 * without a script has only the latter). Read from .git by hand, so that no process is started in
 * someone's training job. Whether files differ from the commit is not checked. Runs once, on the
 * drain's thread.
 */
#include "facts.h"

#include "../base/file.h"
#include "../base/os.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PACKED_MOST (4u * 1024u * 1024u)

static char git_dir[PATH_MAX], common_dir[PATH_MAX], where[PATH_MAX], path[PATH_MAX + 256];
static char line[1024], root[PATH_MAX], cwd[PATH_MAX];

/* Reads the file's first line into `line`, without its end; false if there is none. */
static bool first_line(const char *dir, const char *name)
{
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	n = file_text(path, line, sizeof(line) - 1);
	if (n <= 0)
		return false;
	line[n] = 0;
	line[strcspn(line, "\r\n")] = 0;
	return line[0] != 0;
}

static bool is_hash(const char *s)
{
	size_t n = 0;

	while (isxdigit((unsigned char)s[n]))
		n++;
	return (n == 40 || n == 64) && (s[n] == 0 || isspace((unsigned char)s[n]));
}

static void join(char *out, const char *dir, const char *name)
{
	if (name[0] == '/')
		snprintf(out, PATH_MAX, "%s", name);
	else
		snprintf(out, PATH_MAX, "%.3000s/%.1000s", dir, name);
}

enum found { NONE, FOUND, BROKEN };

/* Opens dir/.git: a folder, or (in a worktree or submodule) a file that names one. BROKEN: that
 * folder is gone; a repository further up is another one. */
static enum found open_git(const char *dir)
{
	bool file;

	snprintf(git_dir, sizeof(git_dir), "%.4000s/.git", dir);
	file = first_line(dir, ".git");
	if (file && !strncmp(line, "gitdir: ", 8))
		join(git_dir, dir, line + 8);
	if (!first_line(git_dir, "HEAD"))
		return file ? BROKEN : NONE;
	snprintf(common_dir, sizeof(common_dir), "%s", git_dir);
	if (first_line(git_dir, "commondir"))
		join(common_dir, git_dir, line);
	return FOUND;
}

/* Searches from a file or a folder upwards; where: the repository's folder. */
static enum found find_git(const char *from)
{
	enum found found;
	char *slash;

	snprintf(where, sizeof(where), "%s", from);
	while ((found = open_git(where)) == NONE) {
		slash = strrchr(where, '/');
		if (!slash || !where[1])
			return NONE;
		slash[slash == where] = 0;
	}
	return found;
}

/* Finds "<hash> <ref>" in packed-refs, and puts the hash into `line`. */
static bool find_packed(const char *ref)
{
	char *all = os_map(PACKED_MOST), *at = all, *end;
	size_t len = strlen(ref);
	bool found = false;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/packed-refs", common_dir);
	n = all ? file_text(path, all, PACKED_MOST - 1) : -1;
	for (; n > 0 && !found && at && *at; at = end ? end + 1 : NULL) {
		const char *space = strchr(at, ' ');

		end = strchr(at, '\n');
		if (!is_hash(at) || !space || strncmp(space + 1, ref, len) ||
		    (space[1 + len] != '\n' && space[1 + len] != 0))
			continue;
		snprintf(line, sizeof(line), "%.*s", (int)(space - at), at);
		found = true;
	}
	os_unmap(all, PACKED_MOST);
	return found;
}

/* Puts the commit of a ref into `line`. */
static bool resolve(const char *ref)
{
	return (first_line(git_dir, ref) && is_hash(line)) ||
	       (first_line(common_dir, ref) && is_hash(line)) || find_packed(ref);
}

static bool (*emit)(const struct gmt_def *d);
static const char *prefix; /* of the facts' keys */

static void place_fact(const char *name, const char *value)
{
	char key[32];

	snprintf(key, sizeof(key), "%s%s", prefix, name);
	facts_emit(emit, key, value, strlen(value));
}

/* Emits "github.com/org/net" for an address of any form. Credentials, before the last '@' or after
 * a '?', are left out. */
static void emit_address(char *url)
{
	char *at = strrchr(url, '@'), *scheme = strstr(url, "://"), *colon;
	char *from = at ? at + 1 : scheme ? scheme + 3 : url;
	size_t len = strcspn(from, "?#");

	len -= len > 4 && !strncmp(from + len - 4, ".git", 4) ? 4 : 0;
	from[len] = 0;
	colon = scheme ? NULL : strchr(from, ':');
	if (colon)
		*colon = '/';
	if (len)
		place_fact("remote", from);
}

static void emit_remote(void)
{
	char *all = os_map(PACKED_MOST), *at = NULL;

	snprintf(path, sizeof(path), "%s/config", common_dir);
	if (all && file_text(path, all, PACKED_MOST - 1) > 0)
		at = strstr(all, "[remote \"origin\"]");
	while (at && (at = strchr(at, '\n')) && at[1] != '[') {
		at += 1 + strspn(at + 1, " \t");
		if (strncmp(at, "url", 3) || !strspn(at + 3, " \t="))
			continue;
		at += 3 + strspn(at + 3, " \t=");
		at[strcspn(at, " \t\r\n")] = 0;
		emit_address(at);
		break;
	}
	os_unmap(all, PACKED_MOST);
}

static void emit_head(void)
{
	char ref[512];

	if (!first_line(git_dir, "HEAD")) {
		place_fact("state", "HEAD could not be read");
		return;
	}
	if (!strncmp(line, "ref: ", 5)) {
		snprintf(ref, sizeof(ref), "%.500s", line + 5);
		place_fact("branch", strncmp(ref, "refs/heads/", 11) ? ref : ref + 11);
		if (!resolve(ref)) {
			place_fact("state", "the branch has no commit that could be read");
			return;
		}
	}
	if (is_hash(line))
		place_fact("commit", line);
	place_fact("state", is_hash(line) ? "read; changes since the commit were not checked"
					  : "HEAD could not be parsed");
}

static void emit_place(const char *of, enum found found, const char *none)
{
	prefix = of;
	if (found == NONE && none)
		place_fact("state", none);
	if (found == NONE)
		return;
	place_fact("root", where);
	if (found == BROKEN) {
		place_fact("state", "its .git names a folder that could not be read");
		return;
	}
	emit_head();
	emit_remote();
}

void gitinfo_emit(bool (*to)(const struct gmt_def *d))
{
	const char *script = script_path();
	enum found found;

	emit = to;
	root[0] = 0;
	if (script) {
		found = find_git(script);
		snprintf(root, sizeof(root), "%s", found == NONE ? "" : where);
		emit_place("git.", found, "no repository was found from the script up");
	}
	if (!getcwd(cwd, sizeof(cwd)))
		return;
	found = find_git(cwd);
	if (!script)
		emit_place("git.", found, "no repository was found from the working directory up");
	else if (found != NONE && strcmp(where, root))
		emit_place("git.cwd_", found, NULL);
}
