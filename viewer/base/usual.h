/* SPDX-License-Identifier: Apache-2.0 */
/* The standard headers, memory and messages, which most files use. The other includes of a file
 * show what else it depends on. */
#pragma once

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "need.h"
#include "say.h"

#define UNUSED __attribute__((unused)) /* a parameter that other functions of its type need */

/* Loops over the items of an array; `count` is read once, before the loop. */
#define FOR_EACH(type, x, array, count) \
	for (type *x = (array), *x##_end = x ? x + (count) : x; x < x##_end; x++)

/* The first item x of an array for which the condition is true; NULL: there is none. */
#define FIRST_OF(x, array, count, condition)                     \
	__extension__({                                          \
		__typeof__(*(array)) *first_##x = NULL;          \
                                                                 \
		FOR_EACH (__typeof__(*(array)), x, array, count) \
			if (condition) {                         \
				first_##x = x;                   \
				break;                           \
			}                                        \
		first_##x;                                       \
	})
#define ANY_OF(x, array, count, condition) (FIRST_OF(x, array, count, condition) != NULL)

/* The item x with the greatest value (a uint64_t) for which the condition is true; the first of
 * several. NULL: there is none. */
#define GREATEST_OF(x, array, count, condition, value)                              \
	__extension__({                                                             \
		__typeof__(*(array)) *greatest_##x = NULL;                          \
		uint64_t most_##x = 0;                                              \
                                                                                    \
		FOR_EACH (__typeof__(*(array)), x, array, count)                    \
			if ((condition) && (!greatest_##x || (value) > most_##x)) { \
				greatest_##x = x;                                   \
				most_##x = (value);                                 \
			}                                                           \
		greatest_##x;                                                       \
	})

/* The sum of a value, a uint64_t, over all items x of an array. */
#define SUM_OF(x, array, count, value)                           \
	__extension__({                                          \
		uint64_t sum_##x = 0;                            \
                                                                 \
		FOR_EACH (__typeof__(*(array)), x, array, count) \
			sum_##x += (value);                      \
		sum_##x;                                         \
	})
