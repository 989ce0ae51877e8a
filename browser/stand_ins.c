/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stand-ins for functions of the system and of commands that need processes, signals or files of
 * the machine. Each fails as if the process, signal or file did not exist. Single-threaded.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../format/reader_ahead.h"
#include "../viewer/base/need.h"
#include "../viewer/commands/question.h"
#include "../viewer/ask/command.h"
#include "../viewer/commands/of_ranks.h"
#include "../viewer/commands/pager.h"
#include "../viewer/recording/recording.h"
#include "../viewer/recording/symbols.h"

static int say_left_out(void)
{
	return say_usage("not possible in a browser: install gpumemtrace for it");
}

/* ---- of the system ---- */

int sigaction(int, const struct sigaction *, struct sigaction *)
{
	errno = ENOSYS;
	return -1;
}

int kill(pid_t, int)
{
	errno = ESRCH;
	return -1;
}

int mallopt(int, int)
{
	return 1;
}

char *mkdtemp(char *)
{
	errno = ENOSYS;
	return NULL;
}

/* An unlinked file. The page opens /proc/self/fd/N as the file with descriptor N. */
int memfd_create(const char *name, unsigned)
{
	int fd = open(name, O_RDWR | O_CREAT | O_EXCL, 0600);

	if (fd >= 0)
		unlink(name);
	return fd;
}

/* The compiler's demangler, which is linked in. */
char *__cxa_demangle(const char *name, char *buf, size_t *len, int *status);

/* Two functions of the C++ library that the demangler refers to and never calls. */
_Noreturn void stand_in_terminate(void) __asm__("_ZSt9terminatev");
void stand_in_terminate(void)
{
	abort();
}

void stand_in_delete(void *p, size_t bytes) __asm__("_ZdlPvm");
void stand_in_delete(void *p, size_t)
{
	free(p);
}

void *dlopen(const char *name, int)
{
	return (void *)name;
}

void *dlsym(void *, const char *name)
{
	return strcmp(name, "__cxa_demangle") ? NULL : (void *)__cxa_demangle;
}

/* No thread decodes ahead, so the reader decodes by itself. */
struct reader_ahead *reader_ahead_begin(struct gmt_reader *, size_t, const struct reader_times *)
{
	return NULL;
}

void reader_ahead_take(struct reader_ahead *, size_t, struct reader_events *)
{
}

void reader_ahead_end(struct reader_ahead *)
{
}

/* ---- sorting: rows that are equal keep their order, as with glibc ---- */

struct sort {
	size_t each;
	int (*compare)(const void *, const void *, void *);
	void *ctx;
};

static void sort_merge(const struct sort *s, char *rows, size_t left, size_t right, char *space)
{
	char *from = space, *end = space + left * s->each, *other = rows + left * s->each,
	     *last = other + right * s->each;

	memcpy(space, rows, left * s->each);
	for (; from < end && other < last; rows += s->each) {
		char **next = s->compare(from, other, s->ctx) <= 0 ? &from : &other;

		memcpy(rows, *next, s->each);
		*next += s->each;
	}
	memcpy(rows, from, (size_t)(end - from));
}

static void sort_rows(const struct sort *s, char *rows, size_t count, char *space)
{
	char *middle = rows + count / 2 * s->each;

	if (count < 2)
		return;
	sort_rows(s, rows, count / 2, space);
	sort_rows(s, middle, count - count / 2, space);
	if (s->compare(middle - s->each, middle, s->ctx) > 0)
		sort_merge(s, rows, count / 2, count - count / 2, space);
}

void qsort_r(void *rows, size_t count, size_t each,
	     int (*compare)(const void *, const void *, void *), void *ctx)
{
	const struct sort s = { each, compare, ctx };
	char *space = need_resize(NULL, count / 2 * each + 1);

	sort_rows(&s, rows, count, space);
	free(space);
}

static int compare_plainly(const void *a, const void *b, void *ctx)
{
	return (*(int (**)(const void *, const void *))ctx)(a, b);
}

void qsort(void *rows, size_t count, size_t each, int (*compare)(const void *, const void *))
{
	qsort_r(rows, count, each, compare_plainly, &compare);
}

/* ---- of the command ---- */

FILE *pager_open(void)
{
	return stdout;
}

void pager_close(FILE *)
{
}

/* The page never asks for a row for each recording. */
int ranks_rows(const struct command *, const void *, const struct options_common *,
	       const struct ranks_run *, struct emit *)
{
	return say_left_out();
}

int ranks_pairs(const struct diff_options *, const struct options_common *,
		const struct ranks_run *, const struct ranks_run *, struct emit *)
{
	return say_left_out();
}

/* The libraries of the recorded program are not available. */
struct elf_names *elf_names_open(const char *, const void *, size_t)
{
	return NULL;
}

void elf_names_close(struct elf_names *)
{
}

const char *elf_names_function(struct elf_names *, uint64_t)
{
	return NULL;
}

const char *elf_names_line(struct elf_names *, uint64_t, unsigned *)
{
	return NULL;
}

int advise_runs(const struct advise_options *, struct emit *)
{
	return say_left_out();
}

int oom_try(const struct oom_options *, struct emit *)
{
	return say_left_out();
}

int search_facts(void)
{
	return say_left_out();
}

#define LEFT_OUT(command)                                                  \
	int run_##command(const struct command##_options *, struct emit *) \
	{                                                                  \
		return say_left_out();                                     \
	}
LEFT_OUT(attach)
LEFT_OUT(bisect)
LEFT_OUT(collect)
LEFT_OUT(compact)
LEFT_OUT(ctl)
LEFT_OUT(dashboard)
LEFT_OUT(fit)
LEFT_OUT(open)
LEFT_OUT(regressions)
LEFT_OUT(run)
LEFT_OUT(sql)
LEFT_OUT(top)

int check_ctl(struct ctl_options *)
{
	return 0;
}

int check_fit(struct fit_options *)
{
	return 0;
}
