/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a kernel's parameters lie, from ELF images and fat binaries: plain, packed by zstd or LZ4,
 * of several architectures; and images that are cut off or wrong.
 *
 * links: simgpu/kernels/layout.c simgpu/kernels/fatbin.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>
#include <cmocka.h>
#include "../../simgpu/kernels/layout.h"

#define ROOM 4096

struct image {
	unsigned char at[ROOM];
	size_t n;
};

static void put(struct image *i, const void *from, size_t bytes)
{
	assert_true(i->n + bytes <= ROOM);
	memcpy(i->at + i->n, from, bytes);
	i->n += bytes;
}

static void put_parameter(struct image *i, uint32_t ordinal, uint32_t offset, uint32_t size)
{
	uint32_t words[] = { 0, ordinal | offset << 16, size << 18 };

	put(i, "\x04\x17\x0c", 4);
	put(i, words, sizeof(words));
}

/* A kernel with a pointer, a structure of 40 bytes and a number, the last first as compilers say
 * it, and one without parameters. */
static struct image elf(const char *kernel)
{
	struct image i = { .n = sizeof(Elf64_Ehdr) }, names = { .n = 1 };
	Elf64_Shdr s[3] = { { .sh_type = SHT_STRTAB } };
	Elf64_Ehdr h = { .e_shentsize = sizeof(s[0]), .e_shnum = 3 };

	memcpy(h.e_ident, ELFMAG, SELFMAG);
	h.e_ident[EI_CLASS] = ELFCLASS64;
	s[1] = (Elf64_Shdr){ .sh_name = 1, .sh_type = SHT_PROGBITS, .sh_offset = i.n };
	put(&i, "\x03\x1b\xff", 4); /* a value, not a size */
	put_parameter(&i, 2, 48, 4);
	put_parameter(&i, 1, 8, 40);
	put_parameter(&i, 0, 0, 8);
	s[1].sh_size = i.n - s[1].sh_offset;
	put(&names, ".nv.info.", 9);
	put(&names, kernel, strlen(kernel) + 1);
	s[2] = (Elf64_Shdr){ .sh_name = names.n, .sh_type = SHT_PROGBITS, .sh_offset = i.n };
	put(&names, ".nv.info.none", 14);
	s[0].sh_offset = i.n;
	s[0].sh_size = names.n;
	put(&i, names.at, names.n);
	h.e_shoff = i.n;
	put(&i, s, sizeof(s));
	memcpy(i.at, &h, sizeof(h));
	return i;
}

enum packing { PLAIN, ZSTD, LZ4 };

/* All literals: a token, the rest of their number, and they. */
static struct image lz4(const struct image *whole)
{
	struct image p = { 0 };
	size_t more = whole->n - 15;

	put(&p, "\xf0", 1);
	for (; more >= 255; more -= 255)
		put(&p, "\xff", 1);
	put(&p, &(unsigned char){ (unsigned char)more }, 1);
	put(&p, whole->at, whole->n);
	return p;
}

static struct image pack(const struct image *whole, enum packing how)
{
	struct image p = *whole;

	if (how == ZSTD)
		p.n = ZSTD_compress(p.at, ROOM, whole->at, whole->n, 3);
	return how == LZ4 ? lz4(whole) : p;
}

static void put_image(struct image *fat, const struct image *whole, enum packing how,
		      uint32_t architecture)
{
	struct image p = pack(whole, how);
	uint64_t size = p.n, unpacked = how == PLAIN ? 0 : whole->n;
	uint32_t packed = how == PLAIN ? 0 : (uint32_t)p.n;
	unsigned char head[64] = { 2, 0, 1, 1, 64 };

	memcpy(head + 8, &size, 8);
	memcpy(head + 16, &packed, 4);
	memcpy(head + 28, &architecture, 4);
	memcpy(head + 56, &unpacked, 8);
	put(fat, head, sizeof(head));
	put(fat, p.at, p.n);
}

static struct image fat_binary(void)
{
	return (struct image){ { 0x50, 0xed, 0x55, 0xba, 1, 0, 16 }, 16 };
}

static void end_fat_binary(struct image *fat)
{
	uint64_t size = fat->n - 16;

	memcpy(fat->at + 8, &size, 8);
}

static void check_kernel(const struct layouts *all, const char *name)
{
	static const struct parameter right[] = { { 0, 8 }, { 8, 40 }, { 48, 4 } };
	const struct layout *l = layouts_find(all, name);

	assert_non_null(l);
	assert_int_equal(l->n, 3);
	assert_memory_equal(all->parameters + l->first, right, sizeof(right));
}

static void test_elf(void **state)
{
	struct image i = elf("add");
	struct layouts all = { 0 };

	(void)state;
	layouts_read(&all, i.at, 90, NULL);
	check_kernel(&all, "add");
	assert_int_equal(layouts_find(&all, "none")->n, 0);
	assert_null(layouts_find(&all, "other"));
	layouts_done(&all);
}

static void test_packings(void **state)
{
	(void)state;
	for (enum packing how = PLAIN; how <= LZ4; how++) {
		struct image i = elf("add"), fat = fat_binary();
		struct layouts all = { 0 };

		put_image(&fat, &i, how, 90);
		end_fat_binary(&fat);
		layouts_read(&all, fat.at, 90, "add");
		check_kernel(&all, "add");
		layouts_done(&all);
	}
}

/* A match that overlaps what it makes. */
static void test_lz4_repeats(void **state)
{
	struct image whole = elf("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), fat = fat_binary(), p;
	const char *first = memmem(whole.at, whole.n, "aaaa", 4);
	size_t before = (size_t)(first + 1 - (const char *)whole.at), rest;
	struct layouts all = { 0 };
	unsigned char head[64] = { 2, 0, 1, 1, 64 };
	uint64_t size, unpacked = whole.n;
	uint32_t packed;

	(void)state;
	p = lz4(&(struct image){ .n = before });
	p.at[0] = 0xff;
	memcpy(p.at + p.n - before, whole.at, before);
	put(&p, "\x01\x00\x0c", 3); /* one back, 31 = 4 + 15 + 12 times */
	rest = whole.n - before - 31;
	put(&p, "\xf0", 1);
	for (size_t more = rest - 15;; more -= 255) {
		put(&p, &(unsigned char){ more < 255 ? (unsigned char)more : 255 }, 1);
		if (more < 255)
			break;
	}
	put(&p, whole.at + before + 31, rest);
	size = p.n;
	packed = (uint32_t)p.n;
	memcpy(head + 8, &size, 8);
	memcpy(head + 16, &packed, 4);
	memcpy(head + 56, &unpacked, 8);
	put(&fat, head, sizeof(head));
	put(&fat, p.at, p.n);
	end_fat_binary(&fat);
	layouts_read(&all, fat.at, 0, NULL);
	check_kernel(&all, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
	layouts_done(&all);
}

static void test_architectures(void **state)
{
	struct image old = elf("old"), new = elf("new"), fat = fat_binary();
	struct layouts all = { 0 };
	struct {
		uint32_t magic, version;
		const void *data;
	} wrapper = { 0x466243b1, 1, fat.at };

	(void)state;
	put_image(&fat, &old, ZSTD, 80);
	put_image(&fat, &new, ZSTD, 90);
	end_fat_binary(&fat);
	layouts_read(&all, &wrapper, 90, NULL); /* its own comes first and is enough */
	check_kernel(&all, "new");
	assert_null(layouts_find(&all, "old"));
	layouts_read(&all, &wrapper, 90, "old"); /* which it has not: the other too */
	check_kernel(&all, "old");
	layouts_done(&all);
}

/* Machine code runs on later cards of the same generation, and PTX on all later ones. */
static void test_code_for_a_card(void **state)
{
	struct image kernel = elf("k"), fat = fat_binary();
	size_t ptx;

	(void)state;
	put_image(&fat, &kernel, PLAIN, 75);
	put_image(&fat, &kernel, PLAIN, 80);
	ptx = fat.n;
	put_image(&fat, &kernel, PLAIN, 100);
	end_fat_binary(&fat);
	assert_false(image_has_code(fat.at, 70));
	assert_true(image_has_code(fat.at, 75));
	assert_true(image_has_code(fat.at, 89));
	assert_false(image_has_code(fat.at, 90));
	assert_true(image_has_code(fat.at, 103));
	assert_false(image_has_code(fat.at, 120));
	fat.at[ptx] = 1;
	assert_true(image_has_code(fat.at, 120));
	assert_false(image_has_code(fat.at, 90));
	assert_true(image_has_code(kernel.at, 70)); /* no fat binary: not known to lack any */
}

/* ---- wrong images ---- */

/* What lies before a page that is not there. */
static unsigned char *at_the_end(const struct image *i, size_t bytes)
{
	static unsigned char *pages;
	size_t page = (size_t)sysconf(_SC_PAGESIZE), room = ROOM > page ? ROOM : page;

	if (!pages) {
		pages = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			     -1, 0);
		assert_true(pages != MAP_FAILED);
		assert_int_equal(mprotect(pages + room, page, PROT_NONE), 0);
	}
	return memcpy(pages + room - bytes, i->at, bytes);
}

static void read_any(const struct image *i, size_t bytes)
{
	struct layouts all = { 0 };

	layouts_read(&all, at_the_end(i, bytes), 90, "add");
	for (size_t k = 0; k < all.n; k++)
		assert_true(all.kernels[k].first + (size_t)all.kernels[k].n <= all.n_parameters);
	layouts_done(&all);
}

static void hurt(const struct image *right)
{
	static const unsigned char values[] = { 0, 1, 0x7f, 0x80, 0xff };
	struct image i = *right;

	for (size_t n = 1; n <= right->n; n++)
		read_any(right, n);
	for (size_t at = 0; at < right->n; at++) {
		for (size_t v = 0; v < sizeof(values); v++) {
			i.at[at] = values[v];
			read_any(&i, i.n);
		}
		i.at[at] = right->at[at];
	}
}

static void test_wrong_images(void **state)
{
	struct image i = elf("add");

	(void)state;
	hurt(&i);
	for (enum packing how = PLAIN; how <= LZ4; how++) {
		struct image fat = fat_binary();

		put_image(&fat, &i, how, 90);
		end_fat_binary(&fat);
		hurt(&fat);
	}
	read_any(&(struct image){ { 0 }, 64 }, 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_elf),	     cmocka_unit_test(test_packings),
		cmocka_unit_test(test_lz4_repeats),  cmocka_unit_test(test_architectures),
		cmocka_unit_test(test_wrong_images), cmocka_unit_test(test_code_for_a_card),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
