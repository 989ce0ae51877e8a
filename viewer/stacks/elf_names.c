/* SPDX-License-Identifier: Apache-2.0 */
#include "elf_names.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../base/plain_file.h"
#include "../base/need.h"
#include "functions.h"

struct elf_names {
	int fd, debug_fd;
	Elf *elf, *debug_elf;
	Dwarf *dwarf;
	bool dwarf_tried;
	char debug_path[160];
	unsigned asked;
	struct functions functions;
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
	*fd = file_open(path);
	if (*fd < 0)
		return NULL;
	elf = elf_begin(*fd, ELF_C_READ_MMAP, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF && same_build_id(elf, id, len))
		return elf;
	elf_end(elf);
	close(*fd);
	return NULL;
}

/* Recorded programs are 64-bit, so other files are ignored. */
static bool deal_table(struct elf_names *n, Elf *elf, Elf_Scn *scn, const GElf_Shdr *header)
{
	const Elf_Data *data = elf_getdata(scn, NULL);
	struct symbol_table table = { .elf = elf, .names = header->sh_link };

	if (!data || data->d_type != ELF_T_SYM || gelf_getclass(elf) != ELFCLASS64)
		return false;
	table.symbols = data->d_buf;
	table.count = table.symbols ? data->d_size / sizeof(*table.symbols) : 0;
	return functions_deal(&n->functions, &table);
}

static bool find_symbols(struct elf_names *n, Elf *elf, unsigned type)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr header;

	while ((scn = elf_nextscn(elf, scn)))
		if (gelf_getshdr(scn, &header) && header.sh_type == type &&
		    deal_table(n, elf, scn, &header))
			return true;
	return false;
}

/* Opens the separate file with debug information, as distributions install it. */
static void find_debug_file(struct elf_names *n, const unsigned char *id, size_t len)
{
	size_t at = snprintf(n->debug_path, sizeof(n->debug_path), "/usr/lib/debug/.build-id/%02x/",
			     len ? id[0] : 0);

	for (size_t i = 1; i < len && at + 10 < sizeof(n->debug_path); i++)
		at += snprintf(n->debug_path + at, sizeof(n->debug_path) - at, "%02x", id[i]);
	snprintf(n->debug_path + at, sizeof(n->debug_path) - at, ".debug");
	n->debug_elf = len > 1 ? open_elf(n->debug_path, id, len, &n->debug_fd) : NULL;
}

/* Releases our mapping's pages of a large library; they stay in the system's cache. */
static void let_go(Elf *elf)
{
	size_t bytes;
	char *image = elf ? elf_rawfile(elf, &bytes) : NULL;

	if (image)
		madvise(image, bytes, MADV_DONTNEED);
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
	/* The full symbol table if there is one, else the dynamic one. */
	if (!find_symbols(n, elf, SHT_SYMTAB) &&
	    (!n->debug_elf || !find_symbols(n, n->debug_elf, SHT_SYMTAB)))
		find_symbols(n, elf, SHT_DYNSYM);
	let_go(elf);
	let_go(n->debug_elf);
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
	functions_free(&n->functions);
	free(n);
}

const char *elf_names_function(struct elf_names *n, uint64_t address)
{
	enum { AT_ONCE = 64 }; /* names, each with the pages around it */
	const char *name = functions_name(&n->functions, address);

	if (++n->asked % AT_ONCE == 0) {
		let_go(n->elf);
		let_go(n->debug_elf);
	}
	return name;
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

/* Finds the unit by the address index, else by checking each unit. */
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
