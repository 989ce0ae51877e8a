/* SPDX-License-Identifier: Apache-2.0 */
#include "run_program.h"

#include <fcntl.h>
#include <glob.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../format/rank.h"
#include "../../format/runnotes.h"
#include "../base/outfile.h"
#include "../recording/running.h"

#define GMT    ".gmt"
#define DIGITS '\1' /* in a name: any number */

int run_output_absolute(const char *pattern, char absolute[PATH_MAX])
{
	char here[PATH_MAX];
	size_t n = 0, length = strlen(pattern);

	if (pattern[0] != '/' && getcwd(here, sizeof(here))) {
		for (const char *s = here; *s && n + 2 < PATH_MAX; s++) {
			if (*s == '%')
				absolute[n++] = '%';
			absolute[n++] = *s;
		}
		if (here[1]) /* not the root */
			absolute[n++] = '/';
	}
	if (n + length >= PATH_MAX)
		return say_usage("-o %.60s...: the name is too long", pattern);
	memcpy(absolute + n, pattern, length + 1);
	return 0;
}

static size_t length_of_name(const char *name)
{
	size_t n = strlen(name), end = strlen(GMT);

	return n > end && !strcmp(name + n - end, GMT) ? n - end : n;
}

void run_output_glob(const char *pattern, const char *more, char *out, int room)
{
	size_t length = length_of_name(pattern), n = 0;

	for (size_t i = 0; i < length && n + 8 < (size_t)room; i++) {
		if (pattern[i] == '%' && pattern[i + 1] == '%') {
			out[n++] = '%';
			i++;
		} else if (pattern[i] == '%' && pattern[i + 1] && strchr("phr", pattern[i + 1])) {
			out[n++] = '*';
			i++;
		} else {
			if (strchr("*?[\\", pattern[i]))
				out[n++] = '\\';
			out[n++] = pattern[i];
		}
	}
	snprintf(out + n, (size_t)room - n, "%s%s", more, pattern + length);
}

/* ---- names that match the pattern ---- */

/* Replacement of a placeholder's letter; DIGITS for an unknown rank, NULL for other letters. */
static const char *meaning(char which, char host[256])
{
	static const char number[] = { DIGITS, 0 };

	if (which == '%')
		return "%";
	if (which == 'h')
		return gethostname(host, 256) ? "host" : host;
	if (which == 'r')
		return gmt_rank() ? gmt_rank() : number;
	return NULL;
}

/* "/tmp/x.%h.%r.gmt" becomes "/tmp/x.box." DIGITS ".gmt". False: the name is too long. */
static bool names_of(const char *pattern, char names[PATH_MAX])
{
	char host[256];
	size_t n = 0;

	for (; *pattern; pattern++) {
		const char *text = *pattern == '%' ? meaning(pattern[1], host) : NULL;
		char one[2] = { *pattern, 0 };

		if (text)
			pattern++;
		else
			text = one;
		if (n + strlen(text) >= PATH_MAX)
			return false;
		strcpy(names + n, text);
		n += strlen(text);
	}
	return true;
}

static size_t digits(const char *s)
{
	size_t n = 0;

	while (isdigit((unsigned char)s[n]))
		n++;
	return n;
}

/* "" or ".PID" or ".PID.N" before the end of the name; *pid is 0 or that PID. */
static bool is_rest(const char *s, const char *end, long *pid)
{
	*pid = 0;
	if (!strcmp(s, end))
		return true;
	if (*s != '.' || !digits(s + 1))
		return false;
	*pid = strtol(s + 1, NULL, 10);
	s += 1 + digits(s + 1);
	if (*s == '.' && digits(s + 1))
		s += 1 + digits(s + 1);
	return !strcmp(s, end);
}

static bool matches(const char *names, size_t length, const char *s, long *pid)
{
	size_t n = 0;

	if (!length)
		return is_rest(s, names, pid);
	if (*names != DIGITS)
		return *names == *s && matches(names + 1, length - 1, s + 1, pid);
	for (n = digits(s); n; n--)
		if (matches(names + 1, length - 1, s + n, pid))
			return true;
	return false;
}

/* ---- recordings of an earlier run ---- */

#define LIVE ".live"

static uint64_t changed_ns(const struct stat *st)
{
	return (uint64_t)st->st_ctim.tv_sec * 1000000000 + (uint64_t)st->st_ctim.tv_nsec;
}

static void note_change(struct run_old *old, const char *path, const char *ending)
{
	char name[PATH_MAX + 8];
	struct stat st;

	snprintf(name, sizeof(name), "%s%s", path, ending);
	if (!lstat(name, &st) && changed_ns(&st) > old->until)
		old->until = changed_ns(&st);
}

static int note_old(struct run_old *old, const char *path)
{
	int rc = outfile_check(path);

	if (rc)
		return rc;
	*need_item(old->paths, old->count, old->room) = need_text(path);
	note_change(old, path, "");
	note_change(old, path, LIVE);
	return 0;
}

static int note_own(struct run_old *old, const char *names, const char *path)
{
	struct gmt_reader_info info;
	long pid;

	if (!matches(names, length_of_name(names), path, &pid))
		return 0;
	if (running_writer(path) || (pid && (!running_info(path, &info) || info.pid != pid)))
		return 0;
	return note_old(old, path);
}

#define TICK_NS 20000000 /* more than one tick of the clock for file times */

/* Sets the change time of a file from the future (the clock was set back) to now. */
static void bring_to_now(const char *path, const char *ending, time_t now)
{
	char name[PATH_MAX + 8];
	struct stat st;

	snprintf(name, sizeof(name), "%s%s", path, ending);
	if (!lstat(name, &st) && S_ISREG(st.st_mode) && st.st_ctim.tv_sec > now)
		chmod(name, st.st_mode & 07777);
}

/* Waits until new files will be younger than the earlier ones. */
static void let_time_pass(struct run_old *old)
{
	const struct timespec tick = { .tv_nsec = TICK_NS };
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (old->until + TICK_NS < (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec)
		return;
	old->until = 0;
	for (size_t i = 0; i < old->count; i++) {
		bring_to_now(old->paths[i], "", now.tv_sec);
		bring_to_now(old->paths[i], LIVE, now.tv_sec);
		note_change(old, old->paths[i], "");
		note_change(old, old->paths[i], LIVE);
	}
	nanosleep(&tick, NULL);
}

static void let_replace(struct run_old *old)
{
	char text[32];

	unsetenv(GMT_REPLACE); /* an outer run set it for other names */
	if (!old->until)
		return;
	let_time_pass(old);
	snprintf(text, sizeof(text), "%" PRIu64, old->until);
	setenv(GMT_REPLACE, text, 1);
}

/* Removes a file that has not changed, under the lock of recorders that replace it. */
static void remove_old(const char *path, uint64_t until)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat ours, there;

	if (fd < 0)
		return;
	if ((!flock(fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK) && !fstat(fd, &ours) &&
	    changed_ns(&ours) <= until && !lstat(path, &there) && there.st_ino == ours.st_ino &&
	    there.st_dev == ours.st_dev)
		unlink(path);
	close(fd);
}

void run_output_remove_old(struct run_old *old)
{
	char live[PATH_MAX + 8];

	for (size_t i = 0; i < old->count; i++) {
		snprintf(live, sizeof(live), "%s" LIVE, old->paths[i]);
		if (outfile_holds_recording(live))
			remove_old(live, old->until);
		remove_old(old->paths[i], old->until);
		free(old->paths[i]);
	}
	old->count = 0;
}

static bool has_process(const char *pattern)
{
	for (; *pattern; pattern++) {
		if (*pattern == '%' && pattern[1] == 'p')
			return true;
		if (*pattern == '%' && pattern[1])
			pattern++;
	}
	return false;
}

/* Checks the folder, unless each process has its own. */
static int check_folder(const char *names)
{
	const char *slash = strrchr(names, '/');

	for (const char *s = names; slash && s < slash; s++)
		if (*s == DIGITS || (*s == '%' && s[1] == 'p'))
			return 0;
	return outfile_check_folder(names);
}

static int note_all(struct run_old *old, const char *absolute, const char *names)
{
	static const char *const more[] = { "", ".*" };
	char pattern[PATH_MAX];
	glob_t found = { 0 };
	int rc = 0;

	for (int i = 0; i < 2; i++) {
		run_output_glob(absolute, more[i], pattern, sizeof(pattern));
		glob(pattern, i ? GLOB_APPEND : 0, NULL, &found);
	}
	for (size_t i = 0; i < found.gl_pathc && !rc; i++)
		rc = note_own(old, names, found.gl_pathv[i]);
	globfree(&found);
	return rc;
}

/* Notes the pattern's only file. A live file without its recording is one of an earlier run, too.
 */
static int note_named(struct run_old *old, const char *path)
{
	char live[PATH_MAX + 8];

	snprintf(live, sizeof(live), "%s" LIVE, path);
	if (running_writer(path))
		return 0;
	return access(path, F_OK) && outfile_holds_recording(live) ? note_old(old, path)
								   : outfile_check(path);
}

int run_output_find_old(const char *absolute, struct run_old *old)
{
	char names[PATH_MAX];
	int rc;

	if (!names_of(absolute, names))
		return say_usage("-o %.60s...: the name is too long", absolute);
	if (has_process(absolute))
		return check_folder(names);
	if (strchr(names, DIGITS))
		rc = check_folder(names);
	else
		rc = note_named(old, names);
	if (!rc)
		rc = note_all(old, absolute, names);
	if (!rc)
		let_replace(old);
	return rc;
}
