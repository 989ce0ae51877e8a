/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products: how many operations, of what type, over how many bytes. lib_products.c
 */
#pragma once

#include "lib.h"

struct lib_product {
	double operations, bytes;
	int cuda_type;
};

void lib_product_of(struct lib_product *p, double m, double n, double k, double count, int type);
/* From a call's arguments; false if the function is no product. */
/* Its matrices, where the arguments are arrays of their addresses. */
void lib_product_arrays(const char *name, const uintptr_t *words, int n);
bool lib_product_called(struct lib_product *p, const char *name, const uintptr_t *words, int n);
