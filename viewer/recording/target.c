/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process to attach to: its memory, and the addresses of functions in its C library and Python
 * interpreter. Changes nothing in it.
 */
#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include "../base/proc.h"
#include "attach_parts.h"

/*
 * Reads the dynamic symbols of an ELF image from the other process's memory, because the file might
 * be gone or in a container. Nothing that is read is trusted: a read that fails ends the search.
 */

enum { CHAIN_MAX = 1 << 20 };

struct image {
	const struct target *t;
	uint64_t bias, symbols, strings, gnu_hash;
};

static bool find_dynamic(struct image *im, uint64_t base, uint64_t *dynamic)
{
	Elf64_Ehdr h;
	Elf64_Phdr p;
	bool loaded = false;

	*dynamic = 0;
	if (!target_read(im->t, base, &h, sizeof(h)) || memcmp(h.e_ident, ELFMAG, SELFMAG) ||
	    h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_phentsize != sizeof(p))
		return false;
	for (unsigned i = 0; i < h.e_phnum; i++) {
		if (!target_read(im->t, base + h.e_phoff + i * sizeof(p), &p, sizeof(p)))
			return false;
		if (p.p_type == PT_LOAD && !loaded) {
			im->bias = base - (p.p_vaddr & ~UINT64_C(4095));
			loaded = true;
		} else if (p.p_type == PT_DYNAMIC) {
			*dynamic = p.p_vaddr;
		}
	}
	*dynamic += im->bias;
	return loaded && *dynamic != im->bias;
}

/* An entry is an address, or still an offset if the dynamic linker did not load the image. */
static uint64_t address(const struct image *im, uint64_t value)
{
	return value < im->bias ? value + im->bias : value;
}

static bool open_image(struct image *im, uint64_t base)
{
	uint64_t at, *to;
	Elf64_Dyn d;

	if (!find_dynamic(im, base, &at))
		return false;
	for (unsigned i = 0; i < 200; i++, at += sizeof(d)) {
		if (!target_read(im->t, at, &d, sizeof(d)) || d.d_tag == DT_NULL)
			break;
		to = d.d_tag == DT_SYMTAB     ? &im->symbols
		     : d.d_tag == DT_STRTAB   ? &im->strings
		     : d.d_tag == DT_GNU_HASH ? &im->gnu_hash
					      : NULL;
		if (to)
			*to = address(im, d.d_un.d_ptr);
	}
	return im->symbols && im->strings && im->gnu_hash;
}

/* The address of symbol `index` if it is a function with that name, defined here; else 0. */
static uint64_t symbol_address(const struct image *im, uint32_t index, const char *name)
{
	size_t len = strlen(name) + 1;
	char own[64];
	Elf64_Sym s;

	if (len > sizeof(own) ||
	    !target_read(im->t, im->symbols + index * sizeof(s), &s, sizeof(s)) ||
	    s.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(s.st_info) != STT_FUNC ||
	    !target_read(im->t, im->strings + s.st_name, own, len) || memcmp(own, name, len))
		return 0;
	return im->bias + s.st_value;
}

static uint64_t by_gnu_hash(const struct image *im, const char *name)
{
	uint32_t head[4], hash = 5381, index = 0, own = 0;
	uint64_t buckets, chains, found = 0;

	for (const unsigned char *c = (const unsigned char *)name; *c; c++)
		hash = hash * 33 + *c;
	if (!target_read(im->t, im->gnu_hash, head, sizeof(head)) || !head[0])
		return 0;
	buckets = im->gnu_hash + sizeof(head) + head[2] * sizeof(uint64_t);
	chains = buckets + head[0] * sizeof(uint32_t);
	if (!target_read(im->t, buckets + hash % head[0] * sizeof(index), &index, sizeof(index)) ||
	    index < head[1])
		return 0;
	for (unsigned i = 0; i < CHAIN_MAX && !found && !(own & 1); i++, index++) {
		if (!target_read(im->t, chains + (index - head[1]) * sizeof(own), &own,
				 sizeof(own)))
			return 0;
		if ((own | 1) == (hash | 1))
			found = symbol_address(im, index, name);
	}
	return found;
}

/* Address of a symbol that the ELF image at `base` defines; 0 = not defined. */
static uint64_t image_symbol(const struct target *t, uint64_t base, const char *name)
{
	struct image im = { .t = t };

	return open_image(&im, base) ? by_gnu_hash(&im, name) : 0;
}

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

/* Takes functions from the C library only, because a preloaded library might define the same names.
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

/* A trap instruction, 0 = none: on x86-64 one byte at any address; on aarch64 an aligned word. */
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

/* Reads the maps twice: first to find the functions, then the code that contains them. */
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

bool target_read(const struct target *t, uint64_t at, void *into, size_t len)
{
	return pread(t->memory, into, len, (off_t)at) == (ssize_t)len;
}

bool target_write(const struct target *t, uint64_t at, const void *from, size_t len)
{
	return pwrite(t->memory, from, len, (off_t)at) == (ssize_t)len;
}
