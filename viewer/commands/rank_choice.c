/* SPDX-License-Identifier: Apache-2.0 */
#include "of_ranks.h"

/* "ranks 0-3", or the names of files. */
static const char *all_words(const struct ranks_run *run, char *buf, size_t room)
{
	bool *all = need_new(run->count + 1);

	memset(all, true, run->count);
	ranks_words(run, all, buf, room);
	free(all);
	return buf;
}

int rank_choose(const struct ranks_run *run, const char *rank, const char *where, size_t *row)
{
	char words[200], *end;
	long n = strtol(rank, &end, 10);

	if (end == rank || *end || n < 0)
		return say_usage("--rank needs a number from 0 up, not \"%s\"", rank);
	for (*row = 0; *row < run->count; ++*row)
		if (run->items[*row].rank == n)
			return 0;
	if (run->items[0].rank < 0)
		return say_usage("%s: no recording says which rank it is of; name one: %s", where,
				 all_words(run, words, sizeof(words)));
	return say_usage("%s: no recording of rank %ld; there are those of %s", where, n,
			 all_words(run, words, sizeof(words)));
}

int rank_choose_one(const struct ranks_run *run, const char *rank, const char *where, size_t *row)
{
	int rc = rank_choose(run, rank, where, row);

	for (size_t i = *row + 1; !rc && run->runs > 1 && i < run->count; i++)
		if (run->items[i].rank == run->items[*row].rank)
			rc = say_usage("%s and %s are both of rank %ld, of different runs: name "
				       "the folder of one",
				       run->items[*row].path, run->items[i].path,
				       run->items[i].rank);
	return rc;
}

int rank_needed(const struct command *c, const struct ranks_run *run, const char *where)
{
	const char *folder = c->output ? ", or a folder with -o FOLDER/ for all" : "";
	char words[200];

	if (run->items[0].rank < 0)
		return say_usage("%s answers for one recording; name one of those in %s%s: %s",
				 c->name, where, folder, all_words(run, words, sizeof(words)));
	return say_usage("%s answers for one recording; choose one with --rank N%s: %s has those "
			 "of ranks %s",
			 c->name, folder, where, all_words(run, words, sizeof(words)));
}
