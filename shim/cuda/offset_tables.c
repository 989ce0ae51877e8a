/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OffsetCalculator of ATen/cuda/detail/OffsetCalculator.cuh, unchanged since PyTorch 1.8: the
 * number of dimensions; for each a divisor, with a magic number and a shift that divide by it; for
 * each a stride for each tensor. The tensors' addresses follow. Pure but for known.h's table.
 * ReduceOp of ATen/native/cuda/Reduce.cuh, unchanged since 1.8, ends with its addresses, a number
 * of 8 bytes, two flags and the number of results.
 */
#include "offset_tables.h"

#include "known.h"

#include <string.h>

#define DIMS	 25u
#define DIVIDERS 4u /* offset of the dividers, bytes */
#define DIVIDER	 12u
#define STRIDES	 (DIVIDERS + DIVIDER * DIMS)
#define TENSORS	 5u

struct divider {
	uint32_t divisor, magic, shift;
};

/* Magic and shift follow from the divisor, so that other data does not look like it. */
static bool is_divider(const char *at)
{
	struct divider d;

	memcpy(&d, at, sizeof(d));
	return d.divisor && d.shift < 32 && 1ull << d.shift >= d.divisor &&
	       (!d.shift || 1ull << (d.shift - 1) < d.divisor) &&
	       d.magic ==
		       (uint32_t)(((1ull << 32) * ((1ull << d.shift) - d.divisor)) / d.divisor + 1);
}

/* Offset of the addresses, for that many tensors. */
static unsigned addresses_at(unsigned tensors)
{
	return (STRIDES + 4 * DIMS * tensors + 7) / 8 * 8;
}

static bool names_memory(const char *parameter, unsigned tensors)
{
	uint64_t word;

	for (unsigned i = 0; i < tensors; i++) {
		memcpy(&word, parameter + addresses_at(tensors) + 8 * i, sizeof(word));
		if (known_is(word))
			return true;
	}
	return false;
}

/* The number of tensors is not in the parameter: the least for which a known address is found. Too
 * few of them cause only false addresses. */
static unsigned tensors_of(const char *parameter, unsigned bytes)
{
	unsigned n = 1;

	while (n < TENSORS && addresses_at(n + 1) + 8 * (n + 1) <= bytes &&
	       !names_memory(parameter, n))
		n++;
	return names_memory(parameter, n) ? n : 1;
}

unsigned reduction_words(const char *end, const char **from)
{
	enum { ALL = (1 << REDUCTION_WORDS) - 1, SECOND_RESULT = 1 << 2 };
	uint8_t flags[4];
	uint32_t results;

	*from = end - 16 - 8 * REDUCTION_WORDS;
	memcpy(flags, end - 8, sizeof(flags));
	memcpy(&results, end - 4, sizeof(results));
	if (flags[0] > 1 || flags[1] > 1 || !results || results > 2)
		return 0;
	return results == 2 ? ALL : ALL & ~SECOND_RESULT;
}

unsigned offset_table_words(const char *parameter, unsigned words)
{
	uint32_t dims;

	if (8 * words < addresses_at(1) + 8)
		return 0;
	memcpy(&dims, parameter, sizeof(dims));
	if (!dims || dims > DIMS)
		return 0;
	for (unsigned i = 0; i < dims; i++)
		if (!is_divider(parameter + DIVIDERS + DIVIDER * i))
			return 0;
	return addresses_at(tensors_of(parameter, 8 * words)) / 8;
}
