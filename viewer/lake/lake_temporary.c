/* SPDX-License-Identifier: Apache-2.0 */
#include "lake_temporary.h"

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/need.h"
#include "../base/say.h"
#include "../ranks/ranks_work.h"
#include "lake_recording.h"
#include "lake_sql.h"

/* A signal that would end this process ends the query first, so that the folder is removed. */
static volatile sig_atomic_t interrupted;
static const int ending[] = { SIGINT, SIGTERM, SIGHUP };
#define ENDING (sizeof(ending) / sizeof(ending[0]))

static void note_signal(int signal)
{
	interrupted = signal;
}

static void listen_to_signals(void)
{
	struct sigaction note = { .sa_handler = note_signal }, old;

	for (size_t i = 0; i < ENDING; i++)
		if (!sigaction(ending[i], NULL, &old) && old.sa_handler != SIG_IGN)
			sigaction(ending[i], &note, NULL);
}

static int work(void *ctx, size_t i, FILE *out)
{
	struct lake_temporary *t = ctx;
	struct lake_writer *w = need_new(sizeof(*w));
	const struct lake_source *x = &t->sources.items[i];
	struct lake_said said;

	(void)out;
	for (size_t s = 0; s < ENDING; s++)
		signal(ending[s], SIG_DFL);
	if (interrupted)
		_exit(EXIT_UNREADABLE);
	*w = (struct lake_writer){ .lake = t->path, .place = &x->place };
	for (int k = LAKE_allocations; k < LAKE_TABLES; k++)
		w->wanted[k] = lake_sql_columns(t->query, (enum lake_table_id)k);
	return lake_collect(w, x->file->path, t->tables, PARQUET_FAST, &said);
}

static void done(void *ctx, size_t i, const struct ranks_result *result)
{
	struct lake_temporary *t = ctx;

	t->kept += !result->rc;
	t->skipped += result->rc != 0;
	if (interrupted)
		return;
	if (result->rc && t->sources.count > 1)
		say_note("%s: left out: %s", t->sources.items[i].file->path, result->error);
	else if (result->rc)
		say_error(result->rc, "%s", result->error);
}

int lake_temporary_make(struct lake_temporary *t, char *const *paths, const char *query)
{
	const char *folder = getenv("TMPDIR");
	struct ranks_work w = { .work = work, .done = done, .ctx = t };
	int rc;

	*t = (struct lake_temporary){ .query = query, .tables = lake_sql_tables(query) };
	snprintf(t->path, sizeof(t->path), "%.3000s/gpumemtrace-sql-XXXXXX",
		 folder && *folder ? folder : "/tmp");
	if (!mkdtemp(t->path)) {
		rc = say_error(EXIT_UNREADABLE, "%s: no folder can be made there: %s", t->path,
			       strerror(errno));
		t->path[0] = 0;
		return rc;
	}
	listen_to_signals();
	rc = lake_sources_find(&t->sources, paths);
	if (rc)
		return rc;
	lake_sources_place(&t->sources, t->path, NULL);
	w.count = t->sources.count;
	ranks_work(&w);
	if (interrupted)
		return EXIT_UNREADABLE;
	if (t->kept)
		return 0;
	return t->sources.count == 1 ? EXIT_UNREADABLE
				     : say_error(EXIT_UNREADABLE,
						 "none of %zu recordings can be read", t->skipped);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st;
	(void)kind;
	(void)ftw;
	remove(path);
	return 0;
}

void lake_temporary_free(struct lake_temporary *t)
{
	if (t->path[0])
		nftw(t->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	lake_sources_free(&t->sources);
	if (!interrupted)
		return;
	signal(interrupted, SIG_DFL);
	raise(interrupted);
}
