/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an image that a program registers or loads: an ELF file or a fat binary, of which
 * the layouts of kernels' parameters are read, by the simulated device and by the recorder. Nothing
 * beyond them is read, every layout that comes out lies among the parameters, and both find the
 * same.
 *
 * links: simgpu/kernels/layout.c simgpu/kernels/fatbin.c
 * links: shim/cuda/image_elf.c shim/cuda/image_unpack.c shim/base/intern.c shim/base/os.c
 */
#include <stdlib.h>
#include <string.h>

#include "../../shim/base/intern.h"
#include "../../shim/cuda/image_elf.h"
#include "../../shim/cuda/image_unpack.h"
#include "../../simgpu/kernels/layout.h"

/* The kernel "add" in the recorder's eyes: nothing else than in the other's. */
static void compare(const struct layouts *all, const uint8_t *elf, size_t len)
{
	const struct layout *l = layouts_find(all, "add");
	struct image_kernel k = { 0 };
	size_t offset, size, n = 0;

	if (!elf_find_kernel(elf, len, intern_hash_bytes("add", 3), &k))
		return;
	for (; !image_parameter(&k, n, &offset, &size); n++)
		if (l && n < l->n &&
		    (all->parameters[l->first + n].offset != offset ||
		     all->parameters[l->first + n].size != size))
			abort();
	if (n <= 1024 && (!l || l->n != n))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static uint8_t out[4096];
	struct layouts all = { 0 };
	unsigned char *copy = malloc(len + !len);

	if (!copy)
		return 0;
	memcpy(copy, data, len);
	layouts_read_elf(&all, copy, len);
	compare(&all, copy, len);
	image_unpack(out, sizeof(out), copy, len);
	if (len > 64 && memcmp(copy, "\177ELF", 4) != 0)
		layouts_read(&all, copy, 90, "add");
	for (size_t i = 0; i < all.n; i++)
		if (all.kernels[i].first + (size_t)all.kernels[i].n > all.n_parameters)
			abort();
	layouts_done(&all);
	free(copy);
	return 0;
}
