/* SPDX-License-Identifier: Apache-2.0 */
#include "output_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/need.h"
#include "../stacks/owners.h"

/* State while names are made: each contains this many folders of its path. */
struct naming {
	const struct ranks_run *run;
	char **names;
	unsigned *folders;
};

/* "run.4711.gmt" and "run.4711.gmt.live" -> the length of "run.4711"; "x.pickle" -> of "x". */
static size_t without_ending(const char *name, size_t len)
{
	static const char live[] = ".live";
	const size_t n = sizeof(live) - 1;
	const char *dot;

	if (len > n && !memcmp(name + len - n, live, n))
		len -= n;
	dot = memrchr(name, '.', len);
	return dot && dot > name ? (size_t)(dot - name) : len;
}

/* The part of the path from its last `count` folders on; fewer if it has fewer. */
static const char *last_folders(const char *path, unsigned count)
{
	const char *at = owners_base(path);

	for (; count && at > path; count--) {
		const char *end = at - 1;

		while (end > path && end[-1] == '/')
			end--;
		while (end > path && end[-1] != '/')
			end--;
		if (*end == '/' || *end == '.')
			break;
		at = end;
	}
	return at;
}

static char *file_name_of(const struct rank_file *f, unsigned folders)
{
	const char *from = last_folders(f->path, folders), *base = owners_base(f->path);
	size_t before = (size_t)(base - from), room = strlen(from) + 32;
	char *name = need_new(room);

	snprintf(name, room, "%.*s", (int)before, from);
	for (char *slash = name; (slash = strchr(slash, '/'));)
		*slash = '-';
	if (f->rank >= 0)
		snprintf(name + before, room - before, "rank-%ld", f->rank);
	else
		snprintf(name + before, room - before, "%.*s",
			 (int)without_ending(base, strlen(base)), base);
	return name;
}

static bool is_alone(const struct naming *n, size_t i)
{
	for (size_t k = 0; k < n->run->count; k++)
		if (k != i && !strcmp(n->names[k], n->names[i]))
			return false;
	return true;
}

/* Adds one more folder to names that are not unique. False: there is none left to add. */
static bool widen(struct naming *n)
{
	size_t count = n->run->count;
	bool *twice = need_new(count + 1), more = false;

	for (size_t i = 0; i < count; i++)
		twice[i] = !is_alone(n, i);
	for (size_t i = 0; i < count; i++) {
		char *name = twice[i] ? file_name_of(&n->run->items[i], ++n->folders[i]) : NULL;

		if (!name)
			continue;
		more |= strcmp(name, n->names[i]) != 0;
		free(n->names[i]);
		n->names[i] = name;
	}
	free(twice);
	return more;
}

/* Numbers equal names ("run", "run-2"), for instance of a file that was given twice. */
static void number_equal_names(struct naming *n)
{
	for (size_t i = 0; i < n->run->count; i++) {
		size_t room = strlen(n->names[i]) + 24;
		char *first = n->names[i];

		for (unsigned k = 2; i && !is_alone(n, i); k++) {
			char *name = need_new(room);

			snprintf(name, room, "%s-%u", first, k);
			if (n->names[i] != first)
				free(n->names[i]);
			n->names[i] = name;
		}
		if (n->names[i] != first)
			free(first);
	}
}

char **output_names(const struct ranks_run *run, const char *folder, const char *ending)
{
	struct naming n = { run, need_new((run->count + 1) * sizeof(*n.names)),
			    need_new((run->count + 1) * sizeof(*n.folders)) };
	size_t len = strlen(folder);

	len -= len > 1 && folder[len - 1] == '/';
	for (size_t i = 0; i < run->count; i++)
		n.names[i] = file_name_of(&run->items[i], 0);
	while (widen(&n))
		;
	number_equal_names(&n);
	for (size_t i = 0; i < run->count; i++) {
		size_t room = len + strlen(n.names[i]) + strlen(ending) + 3;
		char *path = need_new(room);

		snprintf(path, room, "%.*s/%s.%s", (int)len, folder, n.names[i], ending);
		free(n.names[i]);
		n.names[i] = path;
	}
	free(n.folders);
	return n.names;
}

void output_names_free(char **names, size_t count)
{
	for (size_t i = 0; names && i < count; i++)
		free(names[i]);
	free(names);
}
