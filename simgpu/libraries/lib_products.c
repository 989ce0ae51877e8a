/* SPDX-License-Identifier: Apache-2.0
 *
 * Costs of cuBLAS's matrix products, from the names of the functions and the positions of their
 * arguments. All begin with handle, two transpositions, m, n, k. Any thread.
 */
#include <string.h>
#include "lib_products.h"

#define MATRICES_MOST 128 /* in a batch of unknown number */

/* The type is a letter of the name or an argument. The count of products is one or an argument. */
static const struct form {
	const char *part; /* of the name, without "cublas" and the letter */
	int type, count;  /* places of arguments; 0: by the letter, one */
} forms[] = {
	{ "GemmStridedBatchedEx", 8, 20 },
	{ "GemmBatchedEx", 8, 17 },
	{ "GemmEx", 8, 0 },
	{ "gemmStridedBatched", 0, 17 },
	{ "gemmBatched", 0, 14 },
	{ "gemm3mStridedBatched", 0, 17 },
	{ "gemmEx", 8, 0 },
	{ "gemm", 0, 0 },
};

/* The letters S, D, H, C, Z as cudaDataType_t. */
static int type_of_letter(char c)
{
	static const char letters[] = "SDHCZ";
	static const int types[] = { 0, 1, 2, 4, 5 };
	const char *at = strchr(letters, c);

	return at && *at ? types[at - letters] : 0;
}

static double times_of(int cuda_type) /* operations per multiplication and addition */
{
	return cuda_type == 4 || cuda_type == 5 ? 8 : 2;
}

static double number(uintptr_t word, bool wide)
{
	return wide ? (double)(int64_t)word : (double)(int)word;
}

void lib_product_of(struct lib_product *p, double m, double n, double k, double count, int type)
{
	p->cuda_type = type;
	p->operations = times_of(type) * m * n * k * count;
	p->bytes = (double)lib_type_bytes(type) * (m * k + k * n + m * n) * count;
}

bool lib_product_called(struct lib_product *p, const char *name, const uintptr_t *words, int n)
{
	bool wide = strstr(name, "_64") != NULL;

	if (strncmp(name, "cublas", 6))
		return false;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		const struct form *f = &forms[i];
		double count;

		if (!strstr(name + 6, f->part) || f->count >= n)
			continue;
		count = f->count ? number(words[f->count], wide) : 1;
		lib_product_of(p, number(words[3], wide), number(words[4], wide),
			       number(words[5], wide), count,
			       f->type ? (int)words[f->type] : type_of_letter(name[6]));
		return p->operations > 0 && p->operations < 1e18;
	}
	return false;
}

/* Every argument on the device counts as such an array, because the beginning of a matrix is not
 * known, or no address. */
void lib_product_arrays(const char *name, const uintptr_t *words, int n)
{
	bool wide = strstr(name, "_64") != NULL;
	double count = MATRICES_MOST;

	if (!strstr(name, "Batched") || strstr(name, "Strided"))
		return;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if (forms[i].count && forms[i].count < n && strstr(name + 6, forms[i].part)) {
			count = number(words[forms[i].count], wide);
			break;
		}
	for (int i = 1; i < n; i++)
		lib_use_array((const void *)words[i], count);
}
