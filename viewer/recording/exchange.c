/* SPDX-License-Identifier: Apache-2.0 */
#include "attach.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../base/asset.h"
#include "../base/now.h"
#include "../base/plain_file.h"

#define ENTRIES 4000000 /* of history, about 1 GB in the target; the oldest are dropped first */

ASSET_FILE(attach, "viewer/recording/attach.py");

/* Names of files in the folder, in the order in which they appear. */
static const char *const names[] = { "started", "recording", "refused", "snapshot" };

static bool at(const struct exchange *x, const char *name, const char *more,
	       char path[PATH_MAX + 16])
{
	snprintf(path, PATH_MAX + 16, "%s/%s%s", x->folder, name, more);
	return !access(path, F_OK);
}

static bool there(const struct exchange *x, const char *name)
{
	char path[PATH_MAX + 16];

	return at(x, name, "", path);
}

/* This process's path of a folder in the target: through /proc if the target sees another file
 * system there (a container, or a service with its own /tmp). False: it has no such folder. */
static bool place_of(const struct exchange *x, const char *place, char path[64])
{
	struct stat its;

	snprintf(path, 64, "/proc/%d/root%s", (int)x->pid, place);
	if (stat(path, &its))
		return false;
	if (file_same(place, path))
		snprintf(path, 64, "%s", place);
	return true;
}

static bool make_folder_in(struct exchange *x, const char *place, const struct stat *user)
{
	char path[64];

	if (!place_of(x, place, path))
		return false;
	snprintf(x->folder, sizeof(x->folder), "%s/gpumemtrace-attach-%d-XXXXXX", path,
		 (int)x->pid);
	x->inside = x->folder + strlen(path) - strlen(place);
	if (!mkdtemp(x->folder)) {
		x->folder[0] = 0;
		return false;
	}
	return user->st_uid == geteuid() || !chown(x->folder, user->st_uid, user->st_gid);
}

static bool make_folder(struct exchange *x, char why[ATTACH_WHY])
{
	static const char *const places[] = { "/tmp", "/var/tmp", "/dev/shm" };
	char process[64];
	struct stat user;
	bool made = false;

	snprintf(process, sizeof(process), "/proc/%d", (int)x->pid);
	if (!stat(process, &user))
		for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !made; i++)
			made = make_folder_in(x, places[i], &user);
	if (!made)
		snprintf(why, ATTACH_WHY, "no folder can be made in its /tmp: %s", strerror(errno));
	else
		at(x, "snapshot", "", x->snapshot);
	return made;
}

void exchange_end(struct exchange *x)
{
	char path[PATH_MAX + 16];

	for (size_t i = 0; x->folder[0] && i < sizeof(names) / sizeof(names[0]); i++) {
		at(x, names[i], "", path);
		unlink(path);
		at(x, names[i], ".part", path);
		unlink(path);
	}
	if (x->folder[0])
		rmdir(x->folder);
	x->folder[0] = 0;
}

/* Writes a text as a string literal of Python. */
static void put_literal(FILE *f, const char *text)
{
	fputc('"', f);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', f);
		if (*text == '\n')
			fputs("\\n", f);
		else
			fputc(*text, f);
	}
	fputc('"', f);
}

/* The source to run, in a dictionary of its own: it changes no names. The caller frees it. */
static char *write_source(const struct exchange *x)
{
	char *text = NULL;
	size_t len;
	FILE *f = need_stream(&text, &len);

	fputs("exec(", f);
	put_literal(f, asset_attach);
	fputs(", {'__name__': 'gpumemtrace_attach', 'request': (", f);
	put_literal(f, x->inside);
	fprintf(f, ", %g, %d)})\n", x->seconds, ENTRIES);
	fclose(f);
	return text;
}

static bool refused(const struct exchange *x, char why[ATTACH_WHY])
{
	char path[PATH_MAX + 16];
	FILE *f;
	size_t n;

	if (!at(x, "refused", "", path))
		return false;
	f = fopen(path, "re");
	n = f ? fread(why, 1, ATTACH_WHY - 1, f) : 0;
	why[n] = 0;
	if (f)
		fclose(f);
	return true;
}

/* 1 + bytes of the snapshot written so far, 0 = none. While this grows the target answers. */
static long long written(const struct exchange *x)
{
	char path[PATH_MAX + 16];
	struct stat st;

	at(x, "snapshot", ".part", path);
	return stat(path, &st) ? 0 : (long long)st.st_size + 1;
}

static bool no_answer(const struct exchange *x, char why[ATTACH_WHY])
{
	snprintf(why, ATTACH_WHY,
		 there(x, "started")
			 ? "it began its snapshot and did not finish it in %.0f seconds; it was "
			   "left "
			   "alone"
			 : "its Python has not run anything of another thread for %.0f seconds (a "
			   "call that keeps the interpreter's lock); it was left alone",
		 x->patience);
	return false;
}

static bool wait_for(struct exchange *x, bool (*stop)(void), char why[ATTACH_WHY])
{
	const struct timespec pause = { .tv_nsec = 10 * 1000 * 1000 };
	double start = now_seconds(), latest = start;
	char path[PATH_MAX + 16];
	long long seen = 0;

	while (!there(x, "snapshot")) {
		if (refused(x, why))
			return false;
		if (!attach_lives(x->pid)) {
			snprintf(why, ATTACH_WHY, "it ended before its snapshot was written");
			return false;
		}
		if (stop && stop() && !x->recorded) {
			snprintf(why, ATTACH_WHY, "interrupted; it was left alone");
			return false;
		}
		if (there(x, "recording") && now_seconds() - start < x->seconds + x->patience) {
			x->recorded = true;
			latest = now_seconds();
			if (stop && stop() && at(x, "recording", "", path))
				unlink(path);
			say_progress("seconds recorded", (uint64_t)(now_seconds() - start),
				     (uint64_t)x->seconds);
		}
		if (written(x) != seen)
			latest = now_seconds();
		seen = written(x);
		if (now_seconds() - latest > x->patience)
			return no_answer(x, why);
		nanosleep(&pause, NULL);
	}
	say_progress_end();
	return true;
}

bool exchange_run(struct exchange *x, bool (*stop)(void), char why[ATTACH_WHY])
{
	char *source;
	bool fine;

	if (!make_folder(x, why))
		return false;
	source = write_source(x);
	fine = attach_start(x->pid, source, x->patience, why) && wait_for(x, stop, why);
	free(source);
	return fine;
}
