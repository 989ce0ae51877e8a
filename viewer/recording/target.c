/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process to attach to: its memory, and the addresses of functions in its C library and Python
 * interpreter. Changes nothing in it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../base/proc.h"
#include "attach_parts.h"

/* One row of /proc/PID/maps. */
struct mapping {
	uint64_t start, end, offset;
	bool runs;
	char path[PATH_MAX];
};

static bool read_mapping(FILE *f, struct mapping *m)
{
	char line[PATH_MAX + 128], rights[8] = "";
	int path = 0;

	if (!fgets(line, sizeof(line), f))
		return false;
	memset(m, 0, offsetof(struct mapping, path) + 1);
	if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %n", &m->start, &m->end, rights, &m->offset,
		   &path) < 4)
		return true;
	m->runs = rights[2] == 'x';
	snprintf(m->path, sizeof(m->path), "%.*s", (int)strcspn(line + path, "\n"), line + path);
	return true;
}

static bool is_libc(const char *path)
{
	const char *name = strrchr(path, '/') + 1;

	return !strncmp(name, "libc.so", 7) || !strncmp(name, "libc-", 5) ||
	       !strncmp(name, "libpthread", 10);
}

/* Takes functions from the C library only, because a preloaded library may define the same names.
 * If several interpreters are mapped, the first one is used. */
static void look_into(struct target *t, const struct mapping *m)
{
#define FIND(name)    \
	if (!t->name) \
		t->name = image_symbol(t, m->start, #name);
	if (is_libc(m->path)) {
		TARGET_LIBC(FIND)
	} else if (!t->PyGILState_Ensure) {
		TARGET_PYTHON(FIND)
	}
#undef FIND
}

/* On x86-64 one byte at any address; on aarch64 an aligned word. */
static uint64_t find_trap(const struct target *t, const struct mapping *m)
{
#if defined(__x86_64__)
	static const unsigned char mask[] = { 0xff }, want[] = { 0xcc };
#else
	static const unsigned char mask[] = { 0x1f, 0, 0xe0, 0xff }, want[] = { 0, 0, 0x20, 0xd4 };
#endif
	unsigned char part[4096];

	for (uint64_t at = m->start; at < m->end && target_read(t, at, part, sizeof(part));
	     at += sizeof(part))
		for (size_t i = 0; i < sizeof(part); i += sizeof(want)) {
			size_t same = 0;

			while (same < sizeof(want) && (part[i + same] & mask[same]) == want[same])
				same++;
			if (same == sizeof(want))
				return at + i;
		}
	return 0;
}

static void look_at_code(struct target *t, const struct mapping *m)
{
	if (t->PyGILState_Ensure >= m->start && t->PyGILState_Ensure < m->end) {
		t->python = m->start;
		t->python_end = m->end;
	}
	if (!t->trap && t->mmap >= m->start && t->mmap < m->end)
		t->trap = find_trap(t, m);
}

/* Runs once for the names, and once for the code that contains them. */
static bool target_find_functions(struct target *t)
{
	struct mapping m;

	for (int pass = 0; pass < 2; pass++) {
		FILE *f = proc_open("/proc/%d/maps", (int)t->pid);

		if (!f)
			return false;
		while (read_mapping(f, &m)) {
			if (!pass && m.path[0] == '/' && !m.offset && !strstr(m.path, "/dev/"))
				look_into(t, &m);
			if (pass && m.runs)
				look_at_code(t, &m);
		}
		fclose(f);
	}
	return true;
}

static bool complete(const struct target *t, char why[ATTACH_WHY])
{
	if (!t->PyGILState_Ensure || !t->python) {
		snprintf(why, ATTACH_WHY, "there is no Python interpreter in it");
		return false;
	}
#define NEED(name)                                                                                 \
	if (!t->name) {                                                                            \
		snprintf(why, ATTACH_WHY, "its Python or C library lacks the function %s", #name); \
		return false;                                                                      \
	}
	TARGET_FUNCTIONS(NEED)
#undef NEED
	if (!t->trap)
		snprintf(why, ATTACH_WHY, "its C library cannot be read");
	return t->trap;
}

bool target_open(struct target *t, pid_t pid, char why[ATTACH_WHY])
{
	char path[64];

	*t = (struct target){ .pid = pid };
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	t->memory = open(path, O_RDWR | O_CLOEXEC);
	if (t->memory < 0 || !target_find_functions(t)) {
		snprintf(why, ATTACH_WHY, "its memory cannot be read: %s", strerror(errno));
		target_close(t);
		return false;
	}
	if (complete(t, why))
		return true;
	target_close(t);
	return false;
}

void target_close(struct target *t)
{
	if (t->memory >= 0)
		close(t->memory);
	t->memory = -1;
}
