/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator does in attention that is computed step by step, by its name: scores are the
 * product and the softmax of it, as large as each other, that a fused kernel never makes. */
#ifndef VIEWER_SCORES_H
#define VIEWER_SCORES_H

#include <stdbool.h>
#include <stdint.h>

enum made { MADE_OTHER, MADE_PRODUCT, MADE_SOFTMAX, MADE_BETWEEN };

#define SCORES_MIN (1u << 20)

enum made scores_made_by(const char *op);
/* The same number of values, in the same precision or in one of half the bytes. */
bool scores_alike(uint64_t a, uint64_t b);

#endif
