/* SPDX-License-Identifier: Apache-2.0 */
#include "outfile.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../format/reader.h"
#include "../../format/record.h"
#include "ending.h"
#include "machine.h"
#include "plain_file.h"
#include "shell.h"

/* Opens a recording; returns 0, or the reason why it cannot be read. */
static int opened(const char *path)
{
	int err = 0;
	struct gmt_reader *r = gmt_reader_open(path, &err);

	if (r)
		gmt_reader_close(r);
	return r ? 0 : err;
}

static bool is_newer(int err)
{
	return err == -GMT_ERR_NEWER_VERSION || err == -GMT_ERR_UNKNOWN_KIND;
}

bool outfile_holds_recording(const char *path)
{
	int err = opened(path);

	return !err || is_newer(err);
}

static bool is_recording(const char *path)
{
	int err = opened(path);

	return !err || is_newer(err) || err == -GMT_ERR_EMPTY;
}

static int check_name(const char *path)
{
	if (!strcmp(path, "-"))
		return say_usage("-o -: this cannot go to standard output; give a name");
	if (ending_is(path, ".live"))
		return say_usage("%s is the name of a live file, which a running process writes "
				 "beside its recording; choose another name",
				 path);
	return 0;
}

int outfile_check_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX] = ".", word[SHELL_WORD];

	if (slash)
		snprintf(folder, sizeof(folder), "%.*s", slash == path ? 1 : (int)(slash - path),
			 path);
	if (!access(folder, W_OK | X_OK))
		return 0;
	if (errno == ENOENT)
		return say_unreadable("there is no folder %s; make it first: mkdir -p %s", folder,
				      shell_word(folder, word));
	return say_unreadable("nothing can be written to the folder %s: %s", folder,
			      strerror(errno));
}

int outfile_check(const char *path)
{
	struct stat st;
	int rc = check_name(path);

	if (rc)
		return rc;
	if (lstat(path, &st))
		return outfile_check_folder(path);
	if (!S_ISREG(st.st_mode))
		return say_usage("%s exists and is not a plain file; choose another name", path);
	if (st.st_size && !is_recording(path))
		return outfile_refuse(path, "a recording");
	return outfile_check_folder(path);
}

#define START 256

/* The number of bytes read; -1 if the file cannot be read. */
static long read_start(const char *path, char start[START])
{
	FILE *f = file_open_stream(path);
	long got = f ? (long)fread(start, 1, START, f) : -1;

	if (f)
		fclose(f);
	return got;
}

bool outfile_begins(const char *path, const char *head, size_t length)
{
	char start[START];
	long got = read_start(path, start);

	return !got || (got >= (long)length && !memcmp(start, head, length));
}

bool outfile_starts_with(const char *path, const char *text)
{
	char start[START];
	long got = read_start(path, start);

	return !got || (got > 0 && memmem(start, (size_t)got, text, strlen(text)));
}

int outfile_refuse(const char *path, const char *what)
{
	return say_usage("%s exists and is not %s; remove it or choose another name", path, what);
}

int outfile_check_kind(const char *path, const char *head, size_t length, const char *what)
{
	struct stat st;

	if (check_name(path))
		return EXIT_USAGE;
	if (lstat(path, &st))
		return 0;
	if (!S_ISREG(st.st_mode))
		return say_usage("%s exists and is not a plain file; choose another name", path);
	return outfile_begins(path, head, length) ? 0 : outfile_refuse(path, what);
}

static int outfile_open_part(struct outfile *o, const char *path, mode_t mode)
{
	int fd;

	*o = (struct outfile){ .path = path };
	if (snprintf(o->part, sizeof(o->part), "%s.%d.part", path, (int)getpid()) >=
	    (int)sizeof(o->part))
		return say_usage("the name of the output is too long");
	machine_unfinished(o->part, true);
	fd = open(o->part, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	o->f = fd < 0 ? NULL : fdopen(fd, "w+");
	if (o->f)
		return 0;
	machine_unfinished(o->part, false);
	return say_unreadable("%s cannot be written: %s", path, strerror(errno));
}

int outfile_begin(struct outfile *o, const char *path)
{
	return outfile_open_part(o, path, 0600);
}

int outfile_open(struct outfile *o, const char *path, const char *head, const char *what)
{
	int rc = outfile_check_kind(path, head, strlen(head), what);

	return rc ? rc : outfile_open_part(o, path, 0666);
}

int outfile_commit(struct outfile *o)
{
	bool bad = ferror(o->f);
	int why = 0;

	if (fclose(o->f) || bad || rename(o->part, o->path)) {
		why = errno ? errno : EIO;
		unlink(o->part);
	}
	machine_unfinished(o->part, false);
	if (!why)
		return 0;
	return say_unreadable("%s cannot be written: %s", o->path, strerror(why));
}

void outfile_drop(struct outfile *o)
{
	fclose(o->f);
	unlink(o->part);
	machine_unfinished(o->part, false);
}
