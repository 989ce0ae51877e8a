/* SPDX-License-Identifier: Apache-2.0 */
/* Binary search, and comparisons for qsort. */
#pragma once

#include "usual.h"

/* Binary search: the number of items at the start for which `is_first` is true, an expression of an
 * item's number `i`. It must be false for all items behind them. */
#define SORTED_FIRST(count, i, is_first)                      \
	__extension__({                                       \
		size_t from_ = 0, to_ = (count);              \
                                                              \
		while (from_ < to_) {                         \
			size_t i = from_ + (to_ - from_) / 2; \
                                                              \
			if (is_first)                         \
				from_ = i + 1;                \
			else                                  \
				to_ = i;                      \
		}                                             \
		from_;                                        \
	})

/* The result of a comparison for qsort: -1 if a < b, 0 if they are equal, else 1. Several can be
 * chained with ?: so that each decides where those before it are equal. */
#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

/* Defines a comparison of items x and y for qsort. */
#define COMPARE(name, type, order)                      \
	static int name(const void *a_, const void *b_) \
	{                                               \
		const type *x = a_, *y = b_;            \
                                                        \
		return order;                           \
	}

/* qsort of a list that may be empty. */
#define SORT(items, count, by) ((count) ? qsort(items, count, sizeof(*(items)), by) : (void)0)

/* Ascending 64-bit numbers, for qsort. */
static inline int sorted_numbers(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return ORDER(*x, *y);
}
