/* SPDX-License-Identifier: Apache-2.0 */
#include "functions.h"

#include <stdlib.h>
#include <string.h>

#include "../base/need.h"

#define TO_A_PAGE 32 /* functions, about */
#define LOOK_BACK 8  /* functions that may nest around an address */

static bool is_function(const Elf64_Sym *s)
{
	unsigned type = ELF64_ST_TYPE(s->st_info);

	if (!s->st_name || s->st_shndx == SHN_UNDEF)
		return false;
	return type == STT_FUNC || type == STT_GNU_IFUNC || (type == STT_NOTYPE && s->st_size);
}

/* A damaged table has names outside of its string section. */
static const char *name_of(const struct functions *f, const Elf64_Sym *s)
{
	const char *name = elf_strptr(f->table.elf, f->table.names, s->st_name);

	return name ? name : "";
}

static size_t page_of(const struct functions *f, uint64_t address)
{
	return (address - f->low) >> f->shift;
}

static void choose_pages(struct functions *f)
{
	uint64_t high = 0;

	f->low = UINT64_MAX;
	for (size_t i = 0; i < f->table.count; i++) {
		const Elf64_Sym *s = &f->table.symbols[i];

		if (!is_function(s))
			continue;
		f->low = s->st_value < f->low ? s->st_value : f->low;
		high = s->st_value > high ? s->st_value : high;
		f->count++;
	}
	if (!f->count)
		return;
	while (((high - f->low) >> f->shift) > f->count / TO_A_PAGE + 1)
		f->shift++;
	f->pages = page_of(f, high) + 1;
}

/* A counting sort: counts the symbols of each page, computes where each page begins, then
 * distributes them. */
bool functions_deal(struct functions *f, const struct symbol_table *table)
{
	const Elf64_Sym *s = table->symbols;

	f->table = *table;
	choose_pages(f);
	if (!f->count)
		return false;
	f->firsts = need_new((f->pages + 2) * sizeof(*f->firsts));
	f->sorted = need_new(f->pages * sizeof(*f->sorted));
	f->numbers = need_new(f->count * sizeof(*f->numbers));
	for (size_t i = 0; i < table->count; i++)
		if (is_function(&s[i]))
			f->firsts[page_of(f, s[i].st_value) + 2]++;
	for (size_t p = 2; p < f->pages + 2; p++)
		f->firsts[p] += f->firsts[p - 1];
	for (size_t i = 0; i < table->count; i++)
		if (is_function(&s[i]))
			f->numbers[f->firsts[page_of(f, s[i].st_value) + 1]++] = (uint32_t)i;
	return true;
}

void functions_free(struct functions *f)
{
	free(f->numbers);
	free(f->firsts);
	free(f->sorted);
}

/* Orders symbols by address, then by name. The last one at an address is used, because names that
 * begin with '_' come first. */
static int by_start(const void *a, const void *b, void *functions)
{
	const struct functions *f = functions;
	const Elf64_Sym *x = &f->table.symbols[*(const uint32_t *)a];
	const Elf64_Sym *y = &f->table.symbols[*(const uint32_t *)b];

	if (x->st_value != y->st_value)
		return x->st_value < y->st_value ? -1 : 1;
	return strcmp(name_of(f, x), name_of(f, y));
}

static void sort_page(struct functions *f, size_t page)
{
	uint32_t first = f->firsts[page];

	if (!f->sorted[page])
		qsort_r(f->numbers + first, f->firsts[page + 1] - first, sizeof(*f->numbers),
			by_start, f);
	f->sorted[page] = true;
}

const char *functions_name(struct functions *f, uint64_t address)
{
	size_t page, at, looked = 0;

	if (!f->pages || address < f->low)
		return NULL;
	page = page_of(f, address);
	page = page < f->pages ? page : f->pages - 1;
	for (;; page--) {
		sort_page(f, page);
		for (at = f->firsts[page + 1]; at > f->firsts[page]; at--) {
			const Elf64_Sym *one = &f->table.symbols[f->numbers[at - 1]];

			if (one->st_value > address)
				continue;
			if (address - one->st_value < one->st_size || !one->st_size)
				return elf_strptr(f->table.elf, f->table.names, one->st_name);
			if (++looked == LOOK_BACK)
				return NULL;
		}
		if (!page)
			return NULL;
	}
}
