/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cubin has a section of attributes for each kernel, .nv.info.NAME, with the offset and size of
 * each of its parameters. Pure; the input can be any bytes.
 */
#include "image_elf.h"

#include "../base/intern.h"
#include "call.h"

#include <elf.h>
#include <string.h>

#define SECTION ".nv.info."

uint64_t image_hash(const char *name, size_t length)
{
	return intern_hash_bytes(name, length);
}

/* An attribute is a form, a number, and a value or (form 4) a length with bytes. Those of a
 * parameter are its ordinal and offset, with its size in the upper bits. */
struct attribute {
	uint16_t ordinal, offset;
	uint32_t size;
};

static bool next_parameter(const struct image_kernel *k, size_t *at, struct attribute *p)
{
	enum { WITH_BYTES = 4, PARAMETER = 0x17 };
	uint32_t words[3];

	while (*at + 4 <= k->bytes) {
		const uint8_t *a = k->attributes + *at;
		size_t bytes = a[0] == WITH_BYTES ? a[2] + 256u * a[3] : 0;

		*at += 4 + bytes;
		if (a[1] != PARAMETER || bytes != sizeof(words) || *at > k->bytes)
			continue;
		memcpy(words, a + 4, sizeof(words));
		*p = (struct attribute){ (uint16_t)words[1], (uint16_t)(words[1] >> 16),
					 words[2] >> 18 };
		return true;
	}
	return false;
}

int image_parameter(const struct image_kernel *k, size_t i, size_t *offset, size_t *size)
{
	struct attribute p;

	for (size_t at = 0; next_parameter(k, &at, &p);) {
		if (p.ordinal != i)
			continue;
		*offset = p.offset;
		*size = p.size;
		return 0;
	}
	return CUDA_INVALID_VALUE;
}

/* Whether the section lists every parameter up to the last one, each once. */
static bool is_whole(const struct image_kernel *k)
{
	size_t most = 0, count = 0, offset, size;
	struct attribute p;

	for (size_t at = 0; next_parameter(k, &at, &p); count++)
		most = p.ordinal >= most ? p.ordinal + 1u : most;
	for (size_t i = 0; i < most && most == count; i++)
		if (image_parameter(k, i, &offset, &size))
			return false;
	return most == count;
}

static bool section_of(const uint8_t *elf, size_t bytes, const Elf64_Ehdr *h, unsigned i,
		       Elf64_Shdr *s)
{
	memcpy(s, elf + h->e_shoff + i * sizeof(*s), sizeof(*s));
	return s->sh_type != SHT_NOBITS && s->sh_offset <= bytes &&
	       s->sh_size <= bytes - s->sh_offset;
}

bool elf_find_kernel(const uint8_t *elf, size_t bytes, uint64_t name, struct image_kernel *k)
{
	const size_t prefix = strlen(SECTION);
	Elf64_Ehdr h;
	Elf64_Shdr s, names;

	memcpy(&h, elf, bytes < sizeof(h) ? 0 : sizeof(h));
	if (bytes < sizeof(h) || memcmp(&h, ELFMAG, SELFMAG) != 0 || h.e_shentsize != sizeof(s) ||
	    h.e_shoff > bytes || h.e_shnum > (bytes - h.e_shoff) / sizeof(s) ||
	    h.e_shstrndx >= h.e_shnum || !section_of(elf, bytes, &h, h.e_shstrndx, &names))
		return false;
	for (unsigned i = 0; i < h.e_shnum; i++) {
		const char *text = (const char *)elf + names.sh_offset;
		size_t length, most;

		if (!section_of(elf, bytes, &h, i, &s) || s.sh_name >= names.sh_size)
			continue;
		text += s.sh_name;
		most = names.sh_size - s.sh_name;
		length = strnlen(text, most);
		if (length == most || length < prefix || memcmp(text, SECTION, prefix) != 0 ||
		    image_hash(text + prefix, length - prefix) != name)
			continue;
		k->name = text + prefix;
		k->name_size = length - prefix;
		k->attributes = elf + s.sh_offset;
		k->bytes = s.sh_size;
		return is_whole(k);
	}
	return false;
}
