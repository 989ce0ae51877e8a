/* SPDX-License-Identifier: Apache-2.0 */
/* An operator's role in unfused attention, by its name. Scores are the product and its softmax, of
 * equal size. A fused kernel never stores them. */
#ifndef VIEWER_SCORES_H
#define VIEWER_SCORES_H

#include <stdbool.h>
#include <stdint.h>

enum made { MADE_OTHER, MADE_PRODUCT, MADE_SOFTMAX, MADE_BETWEEN };

#define SCORES_MIN (1u << 20)

enum made scores_made_by(const char *op);
/* Whether both have the same number of values, in equal precision or in half. */
bool scores_alike(uint64_t a, uint64_t b);

#endif
