/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <gelf.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/plain_file.h"
#include "../base/sorted.h"

/*
 * Functions of one object by address. A library's table has about 100,000 of them, and a recording
 * needs a few hundred. So the table goes through a small buffer, of which the functions are kept,
 * and only their numbers are distributed to pages of addresses; a page is sorted when an address in
 * it is first looked up. Their names (80 MB in PyTorch's largest library) stay in the file: a part
 * of them is read when a name in it is first needed.
 */

struct function {
	uint64_t start;
	uint32_t size, name;
};

struct functions {
	struct function *all;
	size_t count, room;
	int fd;		   /* of the file with the table and the names */
	GElf_Shdr names;   /* the section with the symbols' names */
	char *text;	   /* the section's bytes as far as they were read, and a zero */
	bool *read;	   /* whether each part of NAMES_PART bytes was read */
	uint32_t *numbers; /* of functions, by page */
	uint64_t low;	   /* the lowest start */
	unsigned shift;	   /* log2 of a page's bytes */
	size_t pages;	   /* 0: not distributed yet */
	uint32_t *firsts;  /* each page's first place in numbers, then the count */
	bool *sorted;
};

#define NAMES_PART 4096 /* bytes */
#define TABLE_PART 2048 /* symbols */
#define TO_A_PAGE  32	/* approximate number of functions */
#define LOOK_BACK  8	/* functions that can nest around an address */

static bool is_function(const Elf64_Sym *s)
{
	unsigned type = ELF64_ST_TYPE(s->st_info);

	if (!s->st_name || s->st_shndx == SHN_UNDEF)
		return false;
	return type == STT_FUNC || type == STT_GNU_IFUNC || (type == STT_NOTYPE && s->st_size);
}

/* The name of a symbol; "" if a damaged table or a file that was cut does not have it. */
static const char *name_of(const struct functions *f, const struct function *one)
{
	size_t size = f->names.sh_size, at = one->name, end;

	if (at >= size)
		return "";
	for (; at < size; at = end) {
		size_t part = at / NAMES_PART, begin = part * NAMES_PART;

		end = begin + NAMES_PART < size ? begin + NAMES_PART : size;
		if (!f->read[part])
			f->read[part] = pread(f->fd, f->text + begin, end - begin,
					      f->names.sh_offset + begin) >= 0;
		if (memchr(f->text + at, '\0', end - at))
			break;
	}
	return f->text + one->name;
}

static size_t page_of(const struct functions *f, uint64_t address)
{
	return (address - f->low) >> f->shift;
}

static void read_table(struct functions *f, uint64_t at, uint64_t end)
{
	enum { MOST = UINT32_MAX };
	Elf64_Sym part[TABLE_PART];
	ssize_t n;

	while ((n = pread(f->fd, part, end - at < sizeof(part) ? end - at : sizeof(part), at)) >=
	       (ssize_t)sizeof(*part)) {
		n /= sizeof(*part);
		at += n * sizeof(*part);
		FOR_EACH (const Elf64_Sym, s, part, n)
			if (is_function(s))
				*need_item(f->all, f->count, f->room) =
					(struct function){ s->st_value,
							   s->st_size < MOST ? s->st_size : MOST,
							   s->st_name };
	}
}

/* A counting sort: counts the functions of each page, computes where each page begins, then
 * distributes them. */
static void functions_deal(struct functions *f)
{
	uint64_t high = 0;

	f->low = UINT64_MAX;
	FOR_EACH (const struct function, one, f->all, f->count) {
		f->low = one->start < f->low ? one->start : f->low;
		high = one->start > high ? one->start : high;
	}
	while (((high - f->low) >> f->shift) > f->count / TO_A_PAGE + 1)
		f->shift++;
	f->pages = page_of(f, high) + 1;
	f->firsts = need_new((f->pages + 2) * sizeof(*f->firsts));
	f->sorted = need_new(f->pages * sizeof(*f->sorted));
	f->numbers = need_new(f->count * sizeof(*f->numbers));
	f->text = need_new(f->names.sh_size + 1);
	f->read = need_new(f->names.sh_size / NAMES_PART + 1);
	FOR_EACH (const struct function, one, f->all, f->count)
		f->firsts[page_of(f, one->start) + 2]++;
	for (size_t p = 2; p < f->pages + 2; p++)
		f->firsts[p] += f->firsts[p - 1];
	for (size_t i = 0; i < f->count; i++)
		f->numbers[f->firsts[page_of(f, f->all[i].start) + 1]++] = (uint32_t)i;
}

static void functions_free(struct functions *f)
{
	free(f->all);
	free(f->numbers);
	free(f->firsts);
	free(f->sorted);
	free(f->text);
	free(f->read);
}

/* Orders symbols by address, then by name. The last one at an address is used, because names that
 * begin with '_' come before those with a small letter. */
static int by_start(const void *a, const void *b, void *functions)
{
	const struct functions *f = functions;
	const struct function *x = &f->all[*(const uint32_t *)a];
	const struct function *y = &f->all[*(const uint32_t *)b];

	return ORDER(x->start, y->start) ?: strcmp(name_of(f, x), name_of(f, y));
}

static void sort_page(struct functions *f, size_t page)
{
	uint32_t first = f->firsts[page];

	if (!f->sorted[page])
		qsort_r(f->numbers + first, f->firsts[page + 1] - first, sizeof(*f->numbers),
			by_start, f);
	f->sorted[page] = true;
}

/* The name of the function at an address, NULL = unknown. */
static const char *functions_name(struct functions *f, uint64_t address)
{
	size_t page, at, looked = 0;

	if (!f->pages || address < f->low)
		return NULL;
	page = page_of(f, address);
	page = page < f->pages ? page : f->pages - 1;
	for (;; page--) {
		sort_page(f, page);
		for (at = f->firsts[page + 1]; at > f->firsts[page]; at--) {
			const struct function *one = &f->all[f->numbers[at - 1]];

			if (one->start > address)
				continue;
			if (address - one->start < one->size || !one->size)
				return *name_of(f, one) ? name_of(f, one) : NULL;
			if (++looked == LOOK_BACK)
				return NULL;
		}
		if (!page)
			return NULL;
	}
}

struct elf_names {
	int fd, debug_fd;
	Elf *elf, *debug_elf;
	Dwarf *dwarf;
	bool dwarf_tried;
	char debug_path[160];
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
	elf = elf_begin(*fd, ELF_C_READ, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF && same_build_id(elf, id, len))
		return elf;
	elf_end(elf);
	close(*fd);
	return NULL;
}

static bool is_in_file(const GElf_Shdr *section, int fd)
{
	struct stat file;

	return !fstat(fd, &file) && section->sh_offset <= (uint64_t)file.st_size &&
	       section->sh_size <= file.st_size - section->sh_offset &&
	       !(section->sh_flags & SHF_COMPRESSED);
}

/* The section with a table's names, of size 0 if the file is damaged. */
static GElf_Shdr names_section(Elf *elf, int fd, size_t number)
{
	GElf_Shdr names;

	if (!gelf_getshdr(elf_getscn(elf, number), &names) || names.sh_type != SHT_STRTAB ||
	    !is_in_file(&names, fd))
		names.sh_size = 0;
	return names;
}

/* Recorded programs are 64-bit and of this byte order, so other files are ignored. False: the file
 * has no table with a function, so that another one can be tried. */
static bool find_symbols(struct functions *f, Elf *elf, int fd, unsigned type)
{
	const char *ident = elf_getident(elf, NULL);
	Elf_Scn *scn = NULL;
	GElf_Shdr table;

	if (ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != ELFDATA2LSB)
		return false;
	f->fd = fd;
	while (!f->count && (scn = elf_nextscn(elf, scn)))
		if (gelf_getshdr(scn, &table) && table.sh_type == type && is_in_file(&table, fd)) {
			f->names = names_section(elf, fd, table.sh_link);
			read_table(f, table.sh_offset, table.sh_offset + table.sh_size);
		}
	if (f->count)
		functions_deal(f);
	return f->count;
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
	if (!find_symbols(&n->functions, elf, fd, SHT_SYMTAB) &&
	    (!n->debug_elf || !find_symbols(&n->functions, n->debug_elf, n->debug_fd, SHT_SYMTAB)))
		find_symbols(&n->functions, elf, fd, SHT_DYNSYM);
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
	return functions_name(&n->functions, address);
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
