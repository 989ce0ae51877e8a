/* SPDX-License-Identifier: Apache-2.0 */
#include "lake.h"

#include <signal.h>
#include <sys/prctl.h>

#include "../base/emit_json.h"
#include "../ranks/ranks_work.h"

struct lake_job {
	const char *folder;
	unsigned long tables;
	uint64_t wanted[LAKE_TABLES];
	char **paths;
	size_t count, room;
};

/* ---- one recording, in a process of its own ---- */

struct text {
	char *s;
	size_t len;
};

static FILE *open_rows(const struct lake_job *j, size_t nth, int t, struct text *text)
{
	char path[PATH_MAX];

	if (t < LAKE_allocations)
		return need_stream(&text->s, &text->len);
	if (snprintf(path, sizeof(path), "%s/%zu.%s", j->folder, nth, lake_tables[t].name) >=
	    PATH_MAX) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	return fopen(path, "w");
}

static int close_rows(struct lake_writer *w, int t, const struct text *text, const char *folder,
		      FILE *out)
{
	bool bad = ferror(w->files[t]);

	bad |= fclose(w->files[t]) != 0;
	if (bad)
		return say_unreadable("%s/%s cannot be written: %s", folder, lake_tables[t].name,
				      strerror(errno));
	if (text->len) {
		fprintf(out, "%s %zu\n", lake_tables[t].name, text->len);
		fwrite(text->s, 1, text->len, out);
	}
	return 0;
}

static int write_rows(void *ctx, size_t i, FILE *out)
{
	const struct lake_job *j = ctx;
	struct lake_writer *w = need_new(sizeof(*w));
	struct text texts[LAKE_TABLES] = { 0 };
	int rc;

	w->nth = i;
	memcpy(w->wanted, j->wanted, sizeof(w->wanted));
	for (int t = 0; t < LAKE_TABLES; t++) {
		if (!(j->tables >> t & 1))
			continue;
		w->files[t] = open_rows(j, i, t, &texts[t]);
		if (!w->files[t])
			return say_unreadable("%s/%s cannot be written: %s", j->folder,
					      lake_tables[t].name, strerror(errno));
	}
	rc = lake_recording_rows(w, j->paths[i]);
	for (int t = 0; t < LAKE_TABLES && !rc; t++)
		if (w->files[t])
			rc = close_rows(w, t, &texts[t], j->folder, out);
	return rc; /* the process ends here, and its memory with it */
}

/* ---- all of them ---- */

static void pass_on(UNUSED void *ctx, UNUSED size_t i, const struct ranks_result *result)
{
	if (result->rc) {
		fputs("{\"error\": ", stdout);
		emit_json_string(stdout, result->error, strlen(result->error));
		fputs("}\n", stdout);
		return;
	}
	printf("{\"bytes\": %zu}\n", result->len);
	fwrite(result->text, 1, result->len, stdout);
}

static void read_paths(struct lake_job *j)
{
	char *path = NULL;
	size_t room = 0;

	while (getdelim(&path, &room, 0, stdin) > 0)
		*need_item(j->paths, j->count, j->room) = need_text(path);
	free(path);
}

int lake_work(char *const *words)
{
	struct lake_job j = { 0 };
	struct ranks_work w = { .work = write_rows, .done = pass_on, .ctx = &j };

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	say_command("collect");
	if (!words[0] || !words[1] || !words[2] || !words[3])
		return say_usage(LAKE_WORK " is for gpumemtrace collect and sql");
	j.folder = words[0];
	j.tables = strtoul(words[1], NULL, 10);
	j.wanted[LAKE_allocations] = strtoull(words[2], NULL, 10);
	j.wanted[LAKE_events] = strtoull(words[3], NULL, 10);
	read_paths(&j);
	w.count = j.count;
	ranks_work(&w);
	for (size_t i = 0; i < j.count; i++)
		free(j.paths[i]);
	free(j.paths);
	return 0;
}
