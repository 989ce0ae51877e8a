/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers in device memory, read and written as kernels would, and where they lie. Any thread.
 */
#include "numbers.h"
#include <string.h>

int number_size(char type)
{
	return strchr("bah", type) ? 1 : strchr("st", type) ? 2 : strchr("lmd", type) ? 8 : 4;
}

long double number_load(char type, const void *p)
{
	union {
		int8_t a;
		uint8_t h;
		int16_t s;
		uint16_t t;
		int32_t i;
		uint32_t j;
		int64_t l;
		uint64_t m;
		float f;
		double d;
	} v;

	memcpy(&v, p, number_size(type));
	switch (type) {
	case 'b':
		return v.h != 0;
	case 'a':
		return v.a;
	case 'h':
		return v.h;
	case 's':
		return v.s;
	case 't':
		return v.t;
	case 'i':
		return v.i;
	case 'j':
		return v.j;
	case 'l':
		return v.l;
	case 'm':
		return v.m;
	case 'f':
		return v.f;
	default:
		return v.d;
	}
}

void number_store(char type, void *p, long double x)
{
	int64_t whole = x >= -9.3e18L && x <= 9.2e18L ? (int64_t)x : 0;
	float f = (float)x;
	double d = (double)x;
	uint8_t flag = x != 0;

	if (type == 'f')
		memcpy(p, &f, sizeof(f));
	else if (type == 'd')
		memcpy(p, &d, sizeof(d));
	else if (type == 'b')
		memcpy(p, &flag, 1);
	else
		memcpy(p, &whole, number_size(type));
}

long double number_cast(char type, long double x)
{
	char bytes[16];

	number_store(type, bytes, x);
	return number_load(type, bytes);
}

/* The number of dimensions comes first, then 25 sizes of three words each, then 25 rows of strides
 * in bytes. */
#define DIMS	   25
#define SIZE_AT(d) (1 + 3 * (d))
#define STRIDES_AT SIZE_AT(DIMS)

size_t steps_words(int pointers)
{
	return STRIDES_AT + (size_t)DIMS * pointers;
}

uint64_t steps_elements(const uint32_t *steps)
{
	uint64_t n = 1;

	for (uint32_t d = 0; d < steps[0] && d < DIMS; d++)
		n *= steps[SIZE_AT(d)];
	return n;
}

size_t steps_offset(const uint32_t *steps, int pointers, int which, uint32_t i)
{
	size_t offset = 0;

	for (uint32_t d = 0; d < steps[0] && d < DIMS && steps[SIZE_AT(d)]; d++) {
		uint32_t size = steps[SIZE_AT(d)];

		offset += (size_t)(i % size) * steps[STRIDES_AT + d * pointers + which];
		i /= size;
	}
	return offset;
}
