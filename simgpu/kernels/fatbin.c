/* SPDX-License-Identifier: Apache-2.0
 *
 * Fat binaries: images of the same kernels for several architectures, each plain or packed (zstd,
 * or LZ4 before CUDA 12.8). They lie in the program's memory and only they themselves give their
 * length, so they are copied by a call that cannot fault. The caller locks.
 */
#include "layout.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include <zstd.h>

#define WRAPPER	   0x466243b1
#define MAGIC	   0xba55ed50
#define KIND_ELF   2
#define IMAGES	   64
#define IMAGE_MOST ((size_t)512 << 20)
#define ZSTD_MARK  0xfd2fb528

struct wrapper {
	uint32_t magic, version;
	const void *data;
};

struct fat_header {
	uint32_t magic;
	uint16_t version, header_size;
	uint64_t size;
};

struct image_header {
	uint16_t kind, version;
	uint32_t header_size;
	uint64_t size;
	uint32_t packed_size, options;
	uint16_t minor, major;
	uint32_t architecture;
	uint64_t name, flags, spare, whole_size; /* 0: not packed */
};

size_t memory_peek(void *to, const void *from, size_t bytes)
{
	struct iovec into = { to, bytes }, source = { (void *)from, bytes };
	ssize_t n = process_vm_readv(getpid(), &into, 1, &source, 1, 0);

	if (n >= 0)
		return (size_t)n;
	if (errno == EFAULT)
		return 0;
	memcpy(to, from, bytes); /* a sandbox forbids the call */
	return bytes;
}

/* A copy of memory; NULL if not all of it is mapped. */
static void *copy_of(const void *from, size_t bytes)
{
	void *to = bytes && bytes <= IMAGE_MOST ? malloc(bytes) : NULL;

	if (to && memory_peek(to, from, bytes) != bytes) {
		free(to);
		to = NULL;
	}
	return to;
}

/* ---- LZ4's block format ---- */

struct lz4 {
	const unsigned char *in, *in_end;
	unsigned char *out, *at, *out_end;
};

/* A length of 15 is continued in the next bytes, up to the first that is not 255. */
static bool length_of(struct lz4 *z, size_t *n)
{
	unsigned char more = 255;

	if (*n != 15)
		return true;
	while (more == 255) {
		if (z->in == z->in_end)
			return false;
		more = *z->in++;
		*n += more;
	}
	return true;
}

static bool literals(struct lz4 *z, size_t n)
{
	if (!length_of(z, &n) || n > (size_t)(z->in_end - z->in) ||
	    n > (size_t)(z->out_end - z->at))
		return false;
	memcpy(z->at, z->in, n);
	z->at += n;
	z->in += n;
	return true;
}

static bool match(struct lz4 *z, size_t n)
{
	size_t back;

	if (z->in_end - z->in < 2)
		return false;
	back = z->in[0] | z->in[1] << 8;
	z->in += 2;
	if (!length_of(z, &n))
		return false;
	n += 4;
	if (!back || back > (size_t)(z->at - z->out) || n > (size_t)(z->out_end - z->at))
		return false;
	for (; n; n--, z->at++)
		*z->at = z->at[-(ptrdiff_t)back];
	return true;
}

static size_t unpack_lz4(unsigned char *out, size_t room, const unsigned char *in, size_t bytes)
{
	struct lz4 z = { in, in + bytes, out, out, out + room };

	while (z.in < z.in_end) {
		unsigned char token = *z.in++;

		if (!literals(&z, token >> 4))
			return 0;
		if (z.in < z.in_end && !match(&z, token & 15))
			return 0;
	}
	return (size_t)(z.at - z.out);
}

/* ---- images ---- */

static void read_packed(struct layouts *all, const unsigned char *in, size_t bytes, size_t whole)
{
	unsigned char *out = whole <= IMAGE_MOST ? malloc(whole) : NULL;
	uint32_t mark;
	size_t n;

	if (!out)
		return;
	memcpy(&mark, in, sizeof(mark));
	n = mark == ZSTD_MARK ? ZSTD_decompress(out, whole, in, bytes)
			      : unpack_lz4(out, whole, in, bytes);
	if (n <= whole) /* else an error of zstd */
		layouts_read_elf(all, out, n);
	free(out);
}

static void read_image(struct layouts *all, const void *at, const struct image_header *h)
{
	size_t bytes = h->packed_size ? h->packed_size : h->size;
	unsigned char *copy;

	if (h->kind != KIND_ELF || bytes > h->size || bytes < sizeof(uint32_t))
		return;
	copy = copy_of((const char *)at + h->header_size, bytes);
	if (copy && h->whole_size && memcmp(copy, ELFMAG, SELFMAG) != 0)
		read_packed(all, copy, bytes, h->whole_size);
	else if (copy)
		layouts_read_elf(all, copy, bytes);
	free(copy);
}

/* Lists the images of a fat binary, those of the architecture first; returns their number. */
static size_t list_images(const void *fat, uint64_t from, uint64_t to, unsigned int architecture,
			  struct image_header heads[IMAGES], const char *places[IMAGES])
{
	struct image_header h;
	size_t n = 0, first = 0;

	for (uint64_t at = from; n < IMAGES && at < to && to - at >= sizeof(h);) {
		const char *place = (const char *)fat + at;
		size_t i = n;

		if (memory_peek(&h, place, sizeof(h)) != sizeof(h) || h.header_size < 8 ||
		    h.header_size > to - at || h.size > to - at - h.header_size)
			break;
		if (h.architecture == architecture) {
			i = first++;
			heads[n] = heads[i];
			places[n] = places[i];
		}
		heads[i] = h;
		places[i] = place;
		n++;
		at += h.header_size + h.size;
	}
	return n;
}

static bool have(const struct layouts *all, const char *name)
{
	return name ? layouts_find(all, name) != NULL : all->n > 0;
}

static void read_fat(struct layouts *all, const void *fat, const struct fat_header *h,
		     unsigned int architecture, const char *name)
{
	struct image_header heads[IMAGES];
	const char *places[IMAGES];
	size_t n = 0;

	if (h->size <= UINT64_MAX / 2)
		n = list_images(fat, h->header_size, h->header_size + h->size, architecture, heads,
				places);
	for (size_t i = 0; i < n && !have(all, name); i++)
		read_image(all, places[i], &heads[i]);
}

/* Bytes of an ELF file in memory, by its table of sections; 0 if that cannot be read. */
static size_t elf_bytes(const void *image)
{
	size_t most = 0;
	Elf64_Ehdr h;
	Elf64_Shdr s;

	if (memory_peek(&h, image, sizeof(h)) != sizeof(h) || h.e_shentsize != sizeof(s) ||
	    h.e_shoff > IMAGE_MOST)
		return 0;
	most = h.e_shoff + h.e_shnum * sizeof(s);
	for (unsigned int i = 0; i < h.e_shnum; i++) {
		const char *at = (const char *)image + h.e_shoff + i * sizeof(s);

		if (memory_peek(&s, at, sizeof(s)) != sizeof(s) || s.sh_offset > IMAGE_MOST ||
		    s.sh_size > IMAGE_MOST)
			return 0;
		if (s.sh_type != SHT_NOBITS && s.sh_offset + s.sh_size > most)
			most = s.sh_offset + s.sh_size;
	}
	return most;
}

static bool runs(const struct image_header *h, unsigned int architecture)
{
	return h->kind == KIND_ELF ? h->architecture / 10 == architecture / 10 &&
					     h->architecture <= architecture
				   : h->architecture <= architecture;
}

/* Gets the image out of a registered wrapper and reads its header. False if it is not mapped. */
static bool unwrap(const void **image, struct fat_header *h)
{
	struct wrapper w;

	if (memory_peek(&w, *image, sizeof(w)) == sizeof(w) && w.magic == WRAPPER)
		*image = w.data;
	return memory_peek(h, *image, sizeof(*h)) == sizeof(*h);
}

bool image_has_code(const void *image, unsigned int architecture)
{
	struct image_header heads[IMAGES];
	const char *places[IMAGES];
	struct fat_header h;
	size_t n;

	if (!unwrap(&image, &h) || h.magic != MAGIC || h.size > UINT64_MAX / 2)
		return true;
	n = list_images(image, h.header_size, h.header_size + h.size, architecture, heads, places);
	for (size_t i = 0; i < n; i++)
		if (runs(&heads[i], architecture))
			return true;
	return !n;
}

void layouts_read(struct layouts *all, const void *image, unsigned int architecture,
		  const char *name)
{
	struct fat_header h;
	void *copy;
	size_t bytes;

	if (!unwrap(&image, &h))
		return;
	if (h.magic == MAGIC) {
		read_fat(all, image, &h, architecture, name);
	} else if (!memcmp(&h, ELFMAG, SELFMAG)) {
		bytes = elf_bytes(image);
		copy = copy_of(image, bytes);
		if (copy)
			layouts_read_elf(all, copy, bytes);
		free(copy);
	}
}
