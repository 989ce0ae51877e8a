/* SPDX-License-Identifier: Apache-2.0 */
#include "running.h"

#include <signal.h>
#include <unistd.h>

#include "../base/plain_file.h"
#include "../base/proc.h"
#include "copying.h"

enum recording_state recording_state(const struct recording *r)
{
	const struct gmt_reader_info *i = r->info;

	if (i->damaged_blocks || i->skipped_bytes)
		return STATE_DAMAGED;
	if (running_writes(r))
		return STATE_RUNNING;
	if (!i->clean_end)
		return STATE_NO_END;
	if (!r->read_through || r->ended)
		return STATE_WHOLE;
	return !strcmp(defs_meta(&r->defs, COPYING_META).s, COPYING_SEARCH) ? STATE_SEARCH
									    : STATE_A_PART;
}

/* People might read these later, on a page, so none of them says "now". */
static const char *const sentences[] = {
	[STATE_WHOLE] = NULL,
	[STATE_DAMAGED] = "The file is damaged (see gpumemtrace verify): these figures are "
			  "those of the readable part.",
	[STATE_RUNNING] = "The program was still running when this was read: figures are up to "
			  "then.",
	[STATE_NO_END] =
		"The program was killed or crashed, or the file was cut: figures are up to "
		"the last event.",
	[STATE_A_PART] = "The recording stops before the run's end (a snapshot, or recovered): "
			 "figures are up to there.",
	[STATE_SEARCH] = "gpumemtrace ended the run, which it had started (fit, bisect, advise): "
			 "figures are up to then.",
};

const char *recording_state_sentence(enum recording_state state)
{
	return sentences[state];
}

#define LIVE ".live"

bool running_lives(long pid)
{
	return !kill((pid_t)pid, 0) || errno == EPERM;
}

/* The recording of a live file in a line of /proc/PID/maps, or NULL. Cuts the line. */
static char *live_path(char *line)
{
	char *path = strchr(line, '/');
	size_t len = path ? strcspn(path, "\n") : 0, end = sizeof(LIVE) - 1;

	if (len <= end || strncmp(path + len - end, LIVE, end))
		return NULL;
	path[len - end] = 0;
	return path;
}

/* Finds the recording whose live file is mapped; false if there is none. Closes f. */
static bool read_maps(FILE *f, char path[PATH_MAX])
{
	char line[PATH_MAX + 128], *found = NULL;

	while (!found && fgets(line, sizeof(line), f))
		found = live_path(line);
	if (found)
		snprintf(path, PATH_MAX, "%s", found);
	fclose(f);
	return found;
}

static int find_mapped(long pid, char path[PATH_MAX])
{
	FILE *f = proc_open("/proc/%ld/maps", pid);

	if (!f && !running_lives(pid))
		return say_usage("there is no process %ld, and no file of that name", pid);
	if (!f)
		return say_unreadable("process %ld: %s, as it belongs to another user; name its "
				      "recording instead",
				      pid, strerror(errno));
	if (read_maps(f, path))
		return 0;
	return say_usage("process %ld writes no recording: it was not started by gpumemtrace run, "
			 "or has not used a device yet",
			 pid);
}

bool running_recording(long pid, char path[PATH_MAX])
{
	FILE *f = proc_open("/proc/%ld/maps", pid);

	return f && read_maps(f, path);
}

bool running_maps(long pid, const char *recording)
{
	char path[PATH_MAX];

	return running_recording(pid, path) && file_same(path, recording);
}

bool running_info(const char *path, struct gmt_reader_info *info)
{
	int err;
	struct gmt_reader *r = gmt_reader_open(path, &err);

	*info = r ? *gmt_reader_info(r) : (struct gmt_reader_info){ 0 };
	gmt_reader_close(r);
	return r;
}

long running_writer(const char *path)
{
	struct gmt_reader_info info;

	return running_info(path, &info) && !info.clean_end && running_maps(info.pid, path)
		       ? info.pid
		       : 0;
}

int running_refuse(const char *path)
{
	long pid = running_writer(path);

	return !pid ? 0
		    : say_usage("process %ld writes its recording to %s; choose another name", pid,
				path);
}

bool running_writes(const struct recording *r)
{
	return !r->info->clean_end && running_maps(r->info->pid, r->path);
}

int running_find(const char *what, char path[PATH_MAX], long *pid)
{
	char *end;
	long n;

	n = strtol(what, &end, 10);
	*pid = 0;
	if (end != what && !*end && n > 0 && n <= INT_MAX && access(what, F_OK)) {
		*pid = n;
		return find_mapped(n, path);
	}
	if (snprintf(path, PATH_MAX, "%s", what) >= PATH_MAX)
		return say_usage("the name of the file is too long");
	return 0;
}
