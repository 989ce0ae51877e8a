/* SPDX-License-Identifier: Apache-2.0
 *
 * Costs of matrix products: number and type of the operations, and bytes (lib_products.c).
 */
#pragma once

#include "lib.h"

struct lib_product {
	double operations, bytes;
	int cuda_type;
};

void lib_product_of(struct lib_product *p, double m, double n, double k, double count, int type);
/* Uses the matrices of a batch, if the call's arguments are arrays of their addresses. */
void lib_product_arrays(const char *name, const uintptr_t *words, int n);
/* From a call's arguments; false if the function is no product. */
bool lib_product_called(struct lib_product *p, const char *name, const uintptr_t *words, int n);
