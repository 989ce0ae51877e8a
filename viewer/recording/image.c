/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dynamic symbols of an ELF image in another process, read from its memory: the file may be
 * gone, or lie in a container. Nothing that is read is trusted: reads that fail end the search.
 */
#include <elf.h>
#include <string.h>

#include "attach_parts.h"

enum { CHAIN_MAX = 1 << 20 };

struct image {
	const struct target *t;
	uint64_t bias, symbols, strings, gnu_hash, hash;
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

/* The dynamic linker has made addresses of them; in an image that it did not load they are offsets.
 */
static uint64_t address(const struct image *im, uint64_t value)
{
	return value < im->bias ? value + im->bias : value;
}

static bool open_image(struct image *im, uint64_t base)
{
	uint64_t at;
	Elf64_Dyn d;

	if (!find_dynamic(im, base, &at))
		return false;
	for (unsigned i = 0; i < 200; i++, at += sizeof(d)) {
		if (!target_read(im->t, at, &d, sizeof(d)) || d.d_tag == DT_NULL)
			break;
		switch (d.d_tag) {
		case DT_SYMTAB:
			im->symbols = address(im, d.d_un.d_ptr);
			break;
		case DT_STRTAB:
			im->strings = address(im, d.d_un.d_ptr);
			break;
		case DT_GNU_HASH:
			im->gnu_hash = address(im, d.d_un.d_ptr);
			break;
		case DT_HASH:
			im->hash = address(im, d.d_un.d_ptr);
			break;
		default:
			break;
		}
	}
	return im->symbols && im->strings && (im->gnu_hash || im->hash);
}

/* Its address, if symbol number `index` has the name and is defined here. */
static uint64_t check(const struct image *im, uint32_t index, const char *name)
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
			found = check(im, index, name);
	}
	return found;
}

static uint64_t by_scan(const struct image *im, const char *name)
{
	uint32_t head[2];
	uint64_t found = 0;

	if (!target_read(im->t, im->hash, head, sizeof(head)))
		return 0;
	for (uint32_t i = 1; i < head[1] && i < CHAIN_MAX && !found; i++)
		found = check(im, i, name);
	return found;
}

uint64_t image_symbol(const struct target *t, uint64_t base, const char *name)
{
	struct image im = { .t = t };

	if (!open_image(&im, base))
		return 0;
	return im.gnu_hash ? by_gnu_hash(&im, name) : by_scan(&im, name);
}
