/* SPDX-License-Identifier: Apache-2.0 */
/* A place in a sorted row, found by halves. */
#pragma once

#include "usual.h"

/* How many of `count` items, `i` being the number of one, are of the first kind, that `is_first`
 * says: those of the other kind stand behind them all. */
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

/* For a comparison of qsort: whether a stands before b (-1), beside or behind it. In a row of them,
 * with ?: between two, each decides where those before it do not. */
#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

/* A comparison of items x and y for qsort. */
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
