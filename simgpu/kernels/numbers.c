/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers in device memory, converted as kernels would. Any thread.
 */
#include "numbers.h"
#include <math.h>
#include <string.h>

int number_size(char type)
{
	return strchr("bah", type) ? 1 : strchr("stHB", type) ? 2 : strchr("lmd", type) ? 8 : 4;
}

bool number_is_real(char type)
{
	return strchr("fdHB", type) != NULL;
}

static long double half_load(uint16_t h)
{
	int exponent = h >> 10 & 31, mantissa = h & 1023;
	long double x = exponent == 31 ? (mantissa ? NAN : INFINITY)
			: exponent     ? ldexp(mantissa + 1024, exponent - 25)
				       : ldexp(mantissa, -24);

	return h >> 15 ? -x : x;
}

/* To the nearest, ties to even, as the default rounding of rint. */
static uint16_t half_store(long double value)
{
	uint16_t sign = signbit(value) ? 0x8000 : 0;
	double x = (double)fabsl(value);
	int exponent;

	if (isnan(x))
		return 0x7fff;
	if (x >= 65520)
		return sign | 0x7c00;
	frexp(x, &exponent);
	if (x == 0 || exponent < -13)
		return sign | (uint16_t)rint(ldexp(x, 24));
	return sign + (uint16_t)(((exponent + 13) << 10) + (int)rint(ldexp(x, 11 - exponent)));
}

static long double brain_load(uint16_t h)
{
	uint32_t bits = (uint32_t)h << 16;
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static uint16_t brain_store(long double x)
{
	float f = (float)x;
	uint32_t bits;

	if (isnan(f))
		return 0x7fc0;
	memcpy(&bits, &f, sizeof(bits));
	return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
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
	case 'H':
		return half_load(v.t);
	case 'B':
		return brain_load(v.t);
	default:
		return v.d;
	}
}

void number_store(char type, void *p, long double x)
{
	int64_t whole = x < -0x1p63L || !(x < 0x1p64L) ? 0
			: x < 0x1p63L		       ? (int64_t)x
						       : (int64_t)(uint64_t)x;
	float f = (float)x;
	double d = (double)x;
	uint16_t half = type == 'H' ? half_store(x) : brain_store(x);
	uint8_t flag = x != 0;

	if (type == 'f')
		memcpy(p, &f, sizeof(f));
	else if (type == 'd')
		memcpy(p, &d, sizeof(d));
	else if (type == 'H' || type == 'B')
		memcpy(p, &half, sizeof(half));
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
