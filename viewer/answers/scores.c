/* SPDX-License-Identifier: Apache-2.0 */
#include "scores.h"

#include <stddef.h>
#include <string.h>

enum made scores_made_by(const char *op)
{
	static const struct {
		const char *word;
		enum made made;
	} known[] = { { "log_softmax", MADE_OTHER }, { "softmax", MADE_SOFTMAX },
		      { "baddbmm", MADE_PRODUCT },   { "bmm", MADE_PRODUCT },
		      { "matmul", MADE_PRODUCT },    { "einsum", MADE_PRODUCT },
		      { "dropout", MADE_BETWEEN },   { "masked_fill", MADE_BETWEEN },
		      { "add", MADE_BETWEEN },	     { "mul", MADE_BETWEEN },
		      { "div", MADE_BETWEEN },	     { "to", MADE_BETWEEN },
		      { "where", MADE_BETWEEN },     { "empty", MADE_BETWEEN } };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strstr(op, known[i].word))
			return known[i].made;
	return MADE_OTHER;
}

bool scores_alike(uint64_t a, uint64_t b)
{
	uint64_t near = (2u << 20) + (a < b ? a : b) / 50;

	return (a > b ? a - b : b - a) < near || (a > 2 * b ? a - 2 * b : 2 * b - a) < near ||
	       (b > 2 * a ? b - 2 * a : 2 * a - b) < near;
}
