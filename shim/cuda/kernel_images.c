/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code usually comes in a wrapper around a fat binary, which the compiler put into a library: it
 * stays where it is until the library is unloaded. Any other code might be freed after the call
 * that loads it, so a copy is kept. A fat binary has an image for each architecture, and all of
 * them lay out a kernel's parameters alike, so the first readable one is used. Everything is read
 * by a call that cannot fault, because no call reports that a library is gone.
 */
#include "kernel_images.h"

#include "../base/file.h"
#include "../base/intern.h"
#include "../base/os.h"
#include "call.h"
#include "image_elf.h"
#include "image_unpack.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define WRAPPER_MAGIC 0x466243b1u
#define FAT_MAGIC     0xba55ed50u
#define FAT_ELF	      2
#define SAYS_LAYOUTS  12040 /* CUDA version of the first driver that reports layouts */

#define PLACES	    4096u
#define WINDOW	    8u
#define IMAGE_MOST  ((size_t)256 << 20)
#define COPIES_MOST ((uint64_t)512 << 20) /* in all */

struct wrapper {
	uint32_t magic, version;
	const void *data;
};

struct fat_header {
	uint32_t magic;
	uint16_t version, header_size;
	uint64_t size; /* after the header */
};

struct fat_image {
	uint16_t kind, version;
	uint32_t header_size;
	uint64_t size;
	uint32_t packed_size, options;
	uint16_t minor, major;
	uint32_t architecture;
	uint64_t name, flags, spare;
	uint64_t whole_size; /* 0: not packed */
};

struct place {
	const void *handle; /* NULL: free */
	const void *code;
	size_t copied; /* bytes; 0: the program's own memory */
};

static struct place places[PLACES];
static uint64_t copied;
static uint32_t readers; /* threads that read a copy */

bool images_are_needed(void)
{
	static uint32_t asked; /* the driver's version + 1; 0 = not known yet */
	uint32_t now = __atomic_load_n(&asked, __ATOMIC_RELAXED);
	typeof(&cuDriverGetVersion) ask;
	int version = 0;

	if (now)
		return now <= SAYS_LAYOUTS;
	ask = MAYBE_DRIVER(cuDriverGetVersion);
	if (!ask || ask(&version) || version <= 0)
		return false;
	__atomic_store_n(&asked, (uint32_t)version + 1, __ATOMIC_RELAXED);
	return version < SAYS_LAYOUTS;
}

static bool peek(void *out, const void *from, size_t bytes)
{
	return file_peek(out, (uintptr_t)from, bytes);
}

/* ---- which code belongs to which handle ---- */

static struct place *window_of(const void *handle)
{
	return &places[intern_mix((uintptr_t)handle) % PLACES & ~(uint64_t)(WINDOW - 1)];
}

static struct place *place_of(const void *handle)
{
	struct place *p = window_of(handle);

	for (unsigned i = 0; i < WINDOW; i++)
		if (__atomic_load_n(&p[i].handle, __ATOMIC_ACQUIRE) == handle)
			return &p[i];
	return NULL;
}

/* Bytes of code without a wrapper; 0 = neither a fat binary nor an ELF file (PTX, for example). */
static size_t code_bytes(const void *code)
{
	union {
		struct fat_header fat;
		Elf64_Ehdr elf;
	} h;
	Elf64_Shdr s;
	size_t most;

	if (!peek(&h.fat, code, sizeof(h.fat)))
		return 0;
	if (h.fat.magic == FAT_MAGIC)
		return h.fat.size < IMAGE_MOST ? h.fat.header_size + h.fat.size : 0;
	if (memcmp(&h, ELFMAG, SELFMAG) != 0 || !peek(&h.elf, code, sizeof(h.elf)) ||
	    h.elf.e_shentsize != sizeof(s) || h.elf.e_shoff > IMAGE_MOST)
		return 0;
	most = h.elf.e_shoff + h.elf.e_shnum * sizeof(s);
	for (unsigned i = 0; i < h.elf.e_shnum; i++) {
		if (!peek(&s, (const char *)code + h.elf.e_shoff + i * sizeof(s), sizeof(s)) ||
		    s.sh_offset > IMAGE_MOST || s.sh_size > IMAGE_MOST)
			return 0;
		if (s.sh_type != SHT_NOBITS && s.sh_offset + s.sh_size > most)
			most = s.sh_offset + s.sh_size;
	}
	return most;
}

static void *copy_of(const void *from, size_t bytes)
{
	void *to = bytes && bytes <= IMAGE_MOST ? os_map(bytes) : NULL;

	if (to && peek(to, from, bytes))
		return to;
	if (to)
		os_unmap(to, bytes);
	return NULL;
}

static void *keep_copy(const void *code, size_t bytes)
{
	void *copy = NULL;

	if (__atomic_add_fetch(&copied, bytes, __ATOMIC_RELAXED) <= COPIES_MOST)
		copy = copy_of(code, bytes);
	if (!copy)
		__atomic_sub_fetch(&copied, bytes, __ATOMIC_RELAXED);
	return copy;
}

static void drop_copy(const void *copy, size_t bytes)
{
	if (!bytes)
		return;
	__atomic_sub_fetch(&copied, bytes, __ATOMIC_RELAXED);
	if (!__atomic_load_n(&readers, __ATOMIC_SEQ_CST)) /* else it is never unmapped */
		os_unmap((void *)copy, bytes);
}

static bool enter(const void *handle, const void *code, size_t bytes)
{
	struct place *p = window_of(handle);

	for (unsigned i = 0; i < WINDOW; i++) {
		const void *none = NULL;

		if (!__atomic_compare_exchange_n(&p[i].handle, &none, handle, false,
						 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		p[i].copied = bytes;
		__atomic_store_n(&p[i].code, code, __ATOMIC_RELEASE);
		return true;
	}
	return false;
}

/* Notes the code of a handle. bytes: size of `code` if it is our copy, else 0. */
static void enter_image(const void *handle, const void *code, size_t bytes)
{
	image_unloaded(handle);
	if (code && !enter(handle, code, bytes))
		drop_copy(code, bytes);
}

void image_loaded(const void *handle, const void *code)
{
	struct wrapper w;
	size_t bytes;

	if (!images_are_needed() || !handle || !code)
		return;
	if (peek(&w, code, sizeof(w)) && w.magic == WRAPPER_MAGIC) {
		enter_image(handle, w.data, 0);
	} else {
		bytes = code_bytes(code);
		enter_image(handle, bytes ? keep_copy(code, bytes) : NULL, bytes);
	}
}

static void *read_file(const struct file *f, size_t *bytes)
{
	struct stat s;
	void *copy;

	if (fstat(f->fd, &s) || s.st_size <= 0 || (uint64_t)s.st_size > IMAGE_MOST)
		return NULL;
	*bytes = (size_t)s.st_size;
	copy = __atomic_add_fetch(&copied, *bytes, __ATOMIC_RELAXED) <= COPIES_MOST ? os_map(*bytes)
										    : NULL;
	if (copy && file_read(f, copy, *bytes) == (ssize_t)*bytes && code_bytes(copy))
		return copy;
	__atomic_sub_fetch(&copied, *bytes, __ATOMIC_RELAXED);
	if (copy)
		os_unmap(copy, *bytes);
	return NULL;
}

void image_loaded_file(const void *handle, const char *path)
{
	struct file f;
	size_t bytes;
	void *copy;

	if (!images_are_needed() || !handle || !path ||
	    !file_open(&f, AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0))
		return;
	copy = read_file(&f, &bytes);
	file_close(&f);
	if (copy)
		enter_image(handle, copy, bytes);
}

void image_unloaded(const void *handle)
{
	struct place *p = handle ? place_of(handle) : NULL;
	const void *code;

	if (!p)
		return;
	code = __atomic_exchange_n(&p->code, NULL, __ATOMIC_SEQ_CST);
	if (!code)
		return;
	drop_copy(code, p->copied);
	__atomic_store_n(&p->handle, NULL, __ATOMIC_RELEASE);
}

/* ---- a kernel in a fat binary ---- */

/* Finds the kernel in `elf` and hands this memory to *k, or unmaps it. */
static bool find_in_memory(void *elf, size_t bytes, size_t mapped, uint64_t name,
			   struct image_kernel *k)
{
	if (bytes && elf_find_kernel(elf, bytes, name, k)) {
		k->memory = elf;
		k->memory_bytes = mapped;
		return true;
	}
	os_unmap(elf, mapped);
	return false;
}

static bool find_in_image(const char *at, const struct fat_image *h, uint64_t name,
			  struct image_kernel *k)
{
	size_t bytes = h->packed_size ? h->packed_size : h->size, whole = h->whole_size;
	uint8_t *stored, *elf;

	if (h->kind != FAT_ELF || bytes > h->size)
		return false;
	stored = copy_of(at + h->header_size, bytes);
	if (!stored)
		return false;
	if (!whole || (bytes >= SELFMAG && !memcmp(stored, ELFMAG, SELFMAG)))
		return find_in_memory(stored, bytes, bytes, name, k);
	elf = whole <= IMAGE_MOST ? os_map(whole) : NULL;
	if (elf)
		whole = image_unpack(elf, h->whole_size, stored, bytes);
	os_unmap(stored, bytes);
	return elf && find_in_memory(elf, whole, h->whole_size, name, k);
}

static bool find_in_fat(const char *fat, const struct fat_header *f, uint64_t name,
			struct image_kernel *k)
{
	uint64_t at = f->header_size, end = at + f->size;
	struct fat_image h;

	while (f->size < IMAGE_MOST && end - at >= sizeof(h)) {
		if (!peek(&h, fat + at, sizeof(h)) || h.header_size < sizeof(h) ||
		    h.header_size > end - at || h.size > end - at - h.header_size)
			return false;
		if (find_in_image(fat + at, &h, name, k))
			return true;
		at += h.header_size + h.size;
	}
	return false;
}

static bool find_in_code(const struct place *p, const char *code, uint64_t name,
			 struct image_kernel *k)
{
	struct fat_header f;
	void *elf;

	if (!code || !peek(&f, code, sizeof(f)))
		return false;
	if (f.magic == FAT_MAGIC)
		return find_in_fat(code, &f, name, k);
	elf = copy_of(code, p->copied);
	return elf && find_in_memory(elf, p->copied, p->copied, name, k);
}

bool image_find(const void *handle, uint64_t name, struct image_kernel *k)
{
	struct place *p = handle ? place_of(handle) : NULL;
	bool found;

	if (!p)
		return false;
	__atomic_add_fetch(&readers, 1, __ATOMIC_SEQ_CST);
	found = find_in_code(p, __atomic_load_n(&p->code, __ATOMIC_SEQ_CST), name, k);
	__atomic_sub_fetch(&readers, 1, __ATOMIC_SEQ_CST);
	return found;
}

void image_close(struct image_kernel *k)
{
	os_unmap(k->memory, k->memory_bytes);
}
