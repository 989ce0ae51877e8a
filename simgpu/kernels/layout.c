/* SPDX-License-Identifier: Apache-2.0
 *
 * Layouts of kernels' parameters from an ELF image. Each kernel has a section .nv.info.NAME of
 * attributes: a form (4: bytes follow), a number, and their size or a value. The input may be any
 * bytes. The caller locks.
 */
#include "layout.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define SECTION	       ".nv.info."
#define PARAMETER_INFO 0x17
#define PARAMETERS     1024

static uint64_t hash(const char *name, size_t n)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)name[i]) * 0x100000001b3ull;
	return h;
}

static bool grow(void **array, size_t *room, size_t wanted, size_t each)
{
	size_t n = *room ? *room : 64;
	void *more;

	if (wanted <= *room)
		return true;
	while (n < wanted)
		n *= 2;
	more = realloc(*array, n * each);
	if (!more)
		return false;
	*array = more;
	*room = n;
	return true;
}

static bool add_layout(struct layouts *all, uint64_t name, const struct parameter *p, uint32_t n)
{
	if (!grow((void **)&all->kernels, &all->room, all->n + 1, sizeof(*all->kernels)) ||
	    !grow((void **)&all->parameters, &all->parameters_room, all->n_parameters + n,
		  sizeof(*all->parameters)))
		return false;
	all->kernels[all->n++] = (struct layout){ name, (uint32_t)all->n_parameters, n };
	for (uint32_t i = 0; i < n; i++)
		all->parameters[all->n_parameters++] = p[i];
	return true;
}

void layouts_add(struct layouts *all, const char *name, const struct parameter *p, uint32_t n)
{
	add_layout(all, hash(name, strlen(name)), p, n);
}

const struct layout *layouts_find(const struct layouts *all, const char *name)
{
	uint64_t wanted = hash(name, strlen(name));

	for (size_t i = 0; i < all->n; i++)
		if (all->kernels[i].name == wanted)
			return &all->kernels[i];
	return NULL;
}

void layouts_done(struct layouts *all)
{
	free(all->kernels);
	free(all->parameters);
	*all = (struct layouts){ 0 };
}

struct section {
	const unsigned char *at;
	size_t bytes;
};

/* Reads the parameters of one kernel; returns their number, or -1 if one is missing. */
static int parameters_of(struct parameter *p, struct section s)
{
	bool told[PARAMETERS] = { false };
	int n = 0, seen = 0;

	for (size_t at = 0; at + 4 <= s.bytes;) {
		size_t size = s.at[at] == 4 ? s.at[at + 2] | s.at[at + 3] << 8 : 0;
		uint32_t word[3], ordinal;

		if (s.at[at + 1] == PARAMETER_INFO && size == sizeof(word) &&
		    size <= s.bytes - at - 4) {
			memcpy(word, s.at + at + 4, size);
			ordinal = word[1] % 65536;
			if (ordinal >= PARAMETERS || told[ordinal])
				return -1;
			told[ordinal] = true;
			p[ordinal] = (struct parameter){ (uint16_t)(word[1] >> 16),
							 (uint16_t)(word[2] >> 18) };
			seen += 1;
			n = (int)ordinal >= n ? (int)ordinal + 1 : n;
		}
		at += 4 + size;
	}
	return n == seen ? n : -1;
}

static bool read_section(struct layouts *all, const char *name, size_t most, struct section s)
{
	struct parameter p[PARAMETERS];
	size_t length = strnlen(name, most);
	int n;

	if (length == most || strncmp(name, SECTION, strlen(SECTION)) != 0)
		return true;
	n = parameters_of(p, s);
	name += strlen(SECTION);
	length -= strlen(SECTION);
	return n < 0 || add_layout(all, hash(name, length), p, (uint32_t)n);
}

static bool header_of(const unsigned char *image, size_t bytes, Elf64_Ehdr *h)
{
	if (bytes < sizeof(*h))
		return false;
	memcpy(h, image, sizeof(*h));
	return !memcmp(h->e_ident, ELFMAG, SELFMAG) && h->e_ident[EI_CLASS] == ELFCLASS64 &&
	       h->e_shentsize == sizeof(Elf64_Shdr) && h->e_shoff <= bytes &&
	       h->e_shnum <= (bytes - h->e_shoff) / sizeof(Elf64_Shdr) &&
	       h->e_shstrndx < h->e_shnum;
}

/* Section i, with the offset of its name; empty if it is not inside the image. */
static struct section section_of(const unsigned char *image, size_t bytes, const Elf64_Ehdr *h,
				 unsigned int i, uint32_t *name)
{
	Elf64_Shdr s;

	memcpy(&s, image + h->e_shoff + i * sizeof(s), sizeof(s));
	*name = s.sh_name;
	if (s.sh_type == SHT_NOBITS || s.sh_offset > bytes || s.sh_size > bytes - s.sh_offset)
		return (struct section){ image, 0 };
	return (struct section){ image + s.sh_offset, s.sh_size };
}

bool layouts_read_elf(struct layouts *all, const void *image, size_t bytes)
{
	struct section names, s;
	Elf64_Ehdr h;
	uint32_t at;

	if (!header_of(image, bytes, &h))
		return true;
	names = section_of(image, bytes, &h, h.e_shstrndx, &at);
	for (unsigned int i = 0; i < h.e_shnum; i++) {
		s = section_of(image, bytes, &h, i, &at);
		if (at < names.bytes &&
		    !read_section(all, (const char *)names.at + at, names.bytes - at, s))
			return false;
	}
	return true;
}
