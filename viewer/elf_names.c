/* SPDX-License-Identifier: Apache-2.0 */
#include "elf_names.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "need.h"

struct function {
	uint64_t start, end;
	const char *name; /* in the ELF file's own memory */
};

struct elf_names {
	int fd, debug_fd;
	Elf *elf, *debug_elf;
	Dwarf *dwarf;
	bool dwarf_tried;
	char debug_path[160];
	struct function *functions;
	size_t count, room;
};

static bool same_build_id(Elf *elf, const void *id, size_t len)
{
	const void *own;
	ssize_t n = dwelf_elf_gnu_build_id(elf, &own);

	return n > 0 ? (size_t)n == len && !memcmp(own, id, len) : len == 0;
}

static Elf *open_elf(const char *path, const void *id, size_t len, int *fd)
{
	Elf *elf;

	elf_version(EV_CURRENT);
	*fd = open(path, O_RDONLY | O_CLOEXEC);
	if (*fd < 0)
		return NULL;
	elf = elf_begin(*fd, ELF_C_READ_MMAP, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF && same_build_id(elf, id, len))
		return elf;
	elf_end(elf);
	close(*fd);
	return NULL;
}

static void add_table(struct elf_names *n, Elf *elf, Elf_Scn *scn, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	size_t total = data && header->sh_entsize ? header->sh_size / header->sh_entsize : 0;
	GElf_Sym sym;

	for (size_t i = 0; i < total && gelf_getsym(data, i, &sym); i++) {
		unsigned type = GELF_ST_TYPE(sym.st_info);
		const char *name = elf_strptr(elf, header->sh_link, sym.st_name);

		if ((type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) || !name ||
		    !*name || sym.st_shndx == SHN_UNDEF || (type == STT_NOTYPE && !sym.st_size))
			continue;
		n->functions = need_grow(n->functions, &n->room, n->count, sizeof(*n->functions));
		n->functions[n->count++] =
			(struct function){ sym.st_value, sym.st_value + sym.st_size, name };
	}
}

/* The full symbol table where there is one, else the dynamic one. */
static bool add_symbols(struct elf_names *n, Elf *elf, unsigned type)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr header;
	size_t before = n->count;

	while ((scn = elf_nextscn(elf, scn)))
		if (gelf_getshdr(scn, &header) && header.sh_type == type)
			add_table(n, elf, scn, &header);
	return n->count > before;
}

static int by_start(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* A separate file of debug information, as distributions install them. */
static void find_debug_file(struct elf_names *n, const unsigned char *id, size_t len)
{
	size_t at = snprintf(n->debug_path, sizeof(n->debug_path), "/usr/lib/debug/.build-id/%02x/",
			     len ? id[0] : 0);

	for (size_t i = 1; i < len && at + 10 < sizeof(n->debug_path); i++)
		at += snprintf(n->debug_path + at, sizeof(n->debug_path) - at, "%02x", id[i]);
	snprintf(n->debug_path + at, sizeof(n->debug_path) - at, ".debug");
	n->debug_elf = len > 1 ? open_elf(n->debug_path, id, len, &n->debug_fd) : NULL;
}

struct elf_names *elf_names_open(const char *path, const void *build_id, size_t len)
{
	int fd;
	Elf *elf = open_elf(path, build_id, len, &fd);
	struct elf_names *n;

	if (!elf)
		return NULL;
	n = need_new(sizeof(*n));
	n->fd = fd;
	n->elf = elf;
	find_debug_file(n, build_id, len);
	if (!add_symbols(n, elf, SHT_SYMTAB) && n->debug_elf)
		add_symbols(n, n->debug_elf, SHT_SYMTAB);
	if (!n->count)
		add_symbols(n, elf, SHT_DYNSYM);
	if (n->count)
		qsort(n->functions, n->count, sizeof(*n->functions), by_start);
	return n;
}

void elf_names_close(struct elf_names *n)
{
	if (!n)
		return;
	dwarf_end(n->dwarf);
	elf_end(n->elf);
	close(n->fd);
	if (n->debug_elf) {
		elf_end(n->debug_elf);
		close(n->debug_fd);
	}
	free(n->functions);
	free(n);
}

/* A symbol without a size reaches to the next one. */
const char *elf_names_function(const struct elf_names *n, uint64_t address)
{
	size_t low = 0, high = n->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (n->functions[mid].start <= address)
			low = mid + 1;
		else
			high = mid;
	}
	for (size_t back = 0; back < 8 && low-- > 0; back++) {
		const struct function *f = &n->functions[low];

		if (address < f->end || f->start == f->end)
			return f->name;
	}
	return NULL;
}

static Dwarf *dwarf_of(struct elf_names *n)
{
	if (!n->dwarf_tried) {
		n->dwarf_tried = true;
		n->dwarf = dwarf_begin_elf(n->elf, DWARF_C_READ, NULL);
		if (!n->dwarf && n->debug_elf)
			n->dwarf = dwarf_begin_elf(n->debug_elf, DWARF_C_READ, NULL);
	}
	return n->dwarf;
}

/* By the address index, else by asking each unit. */
static bool find_unit(Dwarf *dwarf, uint64_t address, Dwarf_Die *unit)
{
	Dwarf_Off offset = 0, next;
	size_t header;

	if (dwarf_addrdie(dwarf, address, unit))
		return true;
	while (!dwarf_nextcu(dwarf, offset, &next, &header, NULL, NULL, NULL)) {
		if (dwarf_offdie(dwarf, offset + header, unit) && dwarf_haspc(unit, address) > 0)
			return true;
		offset = next;
	}
	return false;
}

const char *elf_names_line(struct elf_names *n, uint64_t address, unsigned *line)
{
	Dwarf *dwarf = dwarf_of(n);
	Dwarf_Die unit;
	Dwarf_Line *found;
	int number;

	*line = 0;
	if (!dwarf || !find_unit(dwarf, address, &unit))
		return NULL;
	found = dwarf_getsrc_die(&unit, address);
	if (!found || dwarf_lineno(found, &number) || number < 0)
		return NULL;
	*line = number;
	return dwarf_linesrc(found, NULL, NULL);
}
