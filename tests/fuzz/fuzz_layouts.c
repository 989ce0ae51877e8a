/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an image that a program of the simulated device registers or loads: an ELF file or a
 * fat binary, of which the layouts of kernels' parameters are read. Nothing beyond them is read,
 * and every layout that comes out lies among the parameters.
 *
 * links: simgpu/kernels/layout.c simgpu/kernels/fatbin.c
 */
#include <stdlib.h>
#include <string.h>

#include "../../simgpu/kernels/layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct layouts all = { 0 };
	unsigned char *copy = malloc(len + 1);

	if (!copy)
		return 0;
	memcpy(copy, data, len);
	layouts_read_elf(&all, copy, len);
	if (len > 64 && memcmp(copy, "\177ELF", 4) != 0)
		layouts_read(&all, copy, 90, "add");
	for (size_t i = 0; i < all.n; i++)
		if (all.kernels[i].first + (size_t)all.kernels[i].n > all.n_parameters)
			abort();
	layouts_done(&all);
	free(copy);
	return 0;
}
