/* SPDX-License-Identifier: Apache-2.0 */
#include "run_ranks.h"

#include <stdio.h>
#include <string.h>

#include "../base/need.h"
#include "../ranks/ranks_look.h"

static void note_rank(struct run_ranks *r, long rank)
{
	unsigned bit = 1u << rank % 8;

	r->count += !(r->seen[rank / 8] & bit);
	r->seen[rank / 8] |= bit;
}

static void note_folder(struct run_ranks *r, const char *path)
{
	const char *slash = strrchr(path, '/');
	int n = slash ? (int)(slash - path) + 1 : 2;
	char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), "%.*s", n, slash ? path : "./");
	r->several_folders |= r->folder[0] && strcmp(r->folder, folder);
	memcpy(r->folder, folder, sizeof(folder));
}

void run_ranks_note(struct run_ranks *r, const char *path)
{
	struct rank_file f;

	ranks_look(&f, need_copy(path, strlen(path)));
	if (f.rank >= 0 && f.rank < RUN_RANKS_MOST)
		note_rank(r, f.rank);
	ranks_look_free(&f);
	note_folder(r, path);
}

const char *run_ranks_folder(const struct run_ranks *r)
{
	return r->count > 1 && !r->several_folders ? r->folder : NULL;
}
