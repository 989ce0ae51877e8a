/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks symbols up without the loader: walks the objects and their hash tables (GNU's, or System
 * V's, the only one in NVIDIA's drivers before 495). Any thread, hook path included; allocates
 * nothing, and calls no function of the objects that it reads.
 */
#include "elfsym.h"

#include "forkgate.h"

#include <elf.h>
#include <string.h>

struct tables {
	const ElfW(Sym) * symbols;
	const char *strings;
	const uint32_t *hash; /* DT_GNU_HASH */
	const uint32_t *old;  /* DT_HASH */
};

struct wanted {
	const char *name;
	uint32_t hash;
	void *found;
};

struct library {
	const char *base;
	char *path;
	size_t room;
};

static uint32_t gnu_hash(const char *s)
{
	uint32_t h = 5381;

	while (*s)
		h = h * 33 + (uint8_t)*s++;
	return h;
}

static uint32_t old_hash(const char *s)
{
	uint32_t h = 0;

	while (*s) {
		h = (h << 4) + (uint8_t)*s++;
		h = (h ^ (h >> 24 & 0xf0)) & 0x0fffffff;
	}
	return h;
}

static const ElfW(Phdr) * segment(const struct dl_phdr_info *info, uint32_t type)
{
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == type)
			return &info->dlpi_phdr[i];
	return NULL;
}

bool elfsym_holds(const struct dl_phdr_info *info, uintptr_t address)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && address - info->dlpi_addr - p->p_vaddr < p->p_memsz)
			return true;
	}
	return false;
}

/* glibc relocates these entries in place, other loaders do not. */
static const void *pointer(const struct dl_phdr_info *info, const ElfW(Dyn) * d)
{
	uintptr_t p = d->d_un.d_ptr;

	return (const void *)(elfsym_holds(info, p) ? p : p + info->dlpi_addr);
}

const char *elfsym_entry(const struct dl_phdr_info *info, int64_t tag, const char *prefix)
{
	const ElfW(Phdr) *dynamic = segment(info, PT_DYNAMIC);
	const ElfW(Dyn) * first, *d;
	const char *strings = NULL;

	if (!dynamic)
		return NULL;
	first = (const ElfW(Dyn) *)(info->dlpi_addr + dynamic->p_vaddr);
	for (d = first; d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_STRTAB)
			strings = pointer(info, d);
	for (d = first; strings && d->d_tag != DT_NULL; d++)
		if (d->d_tag == tag && !strncmp(strings + d->d_un.d_val, prefix, strlen(prefix)))
			return strings + d->d_un.d_val;
	return NULL;
}

static bool read_tables(const struct dl_phdr_info *info, struct tables *t)
{
	const ElfW(Phdr) *dynamic = segment(info, PT_DYNAMIC);

	memset(t, 0, sizeof(*t));
	if (!dynamic)
		return false;
	for (const ElfW(Dyn) *d = (const ElfW(Dyn) *)(info->dlpi_addr + dynamic->p_vaddr);
	     d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_SYMTAB)
			t->symbols = pointer(info, d);
		else if (d->d_tag == DT_STRTAB)
			t->strings = pointer(info, d);
		else if (d->d_tag == DT_GNU_HASH)
			t->hash = pointer(info, d);
		else if (d->d_tag == DT_HASH)
			t->old = pointer(info, d);
	}
	return t->symbols && t->strings && (t->hash || t->old);
}

static bool is_it(const struct tables *t, uint32_t i, const char *name)
{
	const ElfW(Sym) *s = &t->symbols[i];
	unsigned type = ELF64_ST_TYPE(s->st_info);

	return s->st_shndx != SHN_UNDEF && (type == STT_FUNC || type == STT_OBJECT) &&
	       !strcmp(t->strings + s->st_name, name);
}

/* Layout: buckets, first symbol, words of the filter, its shift; filter; buckets; chains. */
static const uint64_t *gnu_filter(const struct tables *t)
{
	return (const uint64_t *)(t->hash + 4);
}

static const uint32_t *gnu_buckets(const struct tables *t)
{
	return (const uint32_t *)(gnu_filter(t) + t->hash[2]);
}

static const ElfW(Sym) * look_up_gnu(const struct tables *t, const struct wanted *w)
{
	uint32_t count = t->hash[0], first = t->hash[1], words = t->hash[2];
	const uint64_t *filter = gnu_filter(t);
	const uint32_t *buckets = gnu_buckets(t), *chains = buckets + count;
	uint64_t word, mask = 1ull << (w->hash % 64) | 1ull << ((w->hash >> t->hash[3]) % 64);
	uint32_t i;

	if (!count || !words)
		return NULL;
	word = filter[w->hash / 64 % words];
	i = buckets[w->hash % count];
	if ((word & mask) != mask || i < first)
		return NULL;
	for (;; i++) {
		uint32_t h = chains[i - first];

		if ((h | 1) == (w->hash | 1) && is_it(t, i, w->name))
			return &t->symbols[i];
		if (h & 1)
			return NULL;
	}
}

/* Layout: number of buckets, number of chains; buckets; chains. Chains end at 0. */
static const ElfW(Sym) * look_up_old(const struct tables *t, const struct wanted *w)
{
	uint32_t count = t->old[0], chains = t->old[1];
	const uint32_t *chain = t->old + 2 + count;
	uint32_t i = count ? t->old[2 + old_hash(w->name) % count] : 0;

	for (uint32_t steps = 0; i && i < chains && steps < chains; steps++, i = chain[i])
		if (is_it(t, i, w->name))
			return &t->symbols[i];
	return NULL;
}

static const ElfW(Sym) * look_up(const struct tables *t, const struct wanted *w)
{
	return t->hash ? look_up_gnu(t, w) : look_up_old(t, w);
}

void *elfsym_in(const struct dl_phdr_info *info, const char *name)
{
	struct wanted w = { .name = name, .hash = gnu_hash(name) };
	const ElfW(Sym) * s;
	struct tables t;

	if (!read_tables(info, &t))
		return NULL;
	s = look_up(&t, &w);
	return s ? (void *)(info->dlpi_addr + s->st_value) : NULL;
}

/* The range of exported symbols. No table has their number. In GNU's, they come after the others,
 * in chains, and the last chain ends with the last symbol. */
static void exported(const struct tables *t, uint32_t *first, uint32_t *end)
{
	const uint32_t *buckets, *chains;
	uint32_t last = 0;

	*first = *end = 0;
	if (!t->hash) {
		*end = t->old[1];
		return;
	}
	buckets = gnu_buckets(t);
	chains = buckets + t->hash[0];
	for (uint32_t i = 0; i < t->hash[0]; i++)
		last = buckets[i] > last ? buckets[i] : last;
	*first = t->hash[1];
	if (last < *first)
		return;
	while (!(chains[last - *first] & 1))
		last++;
	*end = last + 1;
}

void elfsym_functions(const struct dl_phdr_info *info,
		      void (*fn)(void *ctx, uint64_t start, uint64_t size, const char *name),
		      void *ctx)
{
	struct tables t;
	uint32_t i, end;

	if (!read_tables(info, &t))
		return;
	for (exported(&t, &i, &end); i < end; i++) {
		const ElfW(Sym) *s = &t.symbols[i];
		unsigned type = ELF64_ST_TYPE(s->st_info);

		if (s->st_shndx != SHN_UNDEF && s->st_size &&
		    (type == STT_FUNC || type == STT_GNU_IFUNC))
			fn(ctx, info->dlpi_addr + s->st_value, s->st_size, t.strings + s->st_name);
	}
}

static int find_in(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct wanted *w = ctx;
	struct tables t;
	const ElfW(Sym) * s;

	(void)size;
	if (elfsym_holds(info, (uintptr_t)&find_in) || !read_tables(info, &t))
		return 0;
	s = look_up(&t, w);
	if (s)
		w->found = (void *)(info->dlpi_addr + s->st_value);
	return s != NULL;
}

void *elfsym_find(const char *name)
{
	struct wanted w = { .name = name, .hash = gnu_hash(name) };

	forkgate_objects(find_in, &w);
	return w.found;
}

static int is_library(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct library *l = ctx;
	const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
	size_t n;

	(void)size;
	if (!slash || strcmp(slash + 1, l->base))
		return 0;
	n = strnlen(info->dlpi_name, l->room - 1);
	memcpy(l->path, info->dlpi_name, n);
	l->path[n] = 0;
	return 1;
}

bool elfsym_path(const char *base, char *path, size_t room)
{
	struct library l = { base, path, room };

	return forkgate_objects(is_library, &l) == 1;
}
