/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL: the arithmetic of its reductions, in the order of the ranks, each step rounded to the type
 * as on a card. Buffers are aligned for their type. Any thread.
 */
#include <math.h>
#include <string.h>
#include "lib_nccl.h"

#define PART 512 /* halves at a time */

/* Whole numbers wrap around: they are added and multiplied without their sign. */
#define COMBINE(name, type, wraps)                                                  \
	static void combine_##name(void *total, const void *with, size_t n, int op) \
	{                                                                           \
		type *a = total;                                                    \
		const type *b = with;                                               \
                                                                                    \
		for (size_t i = 0; i < n; i++)                                      \
			if (op == NCCL_PROD)                                        \
				a[i] = (type)((wraps)a[i] * (wraps)b[i]);           \
			else if (op == NCCL_MAX)                                    \
				a[i] = a[i] < b[i] ? b[i] : a[i];                   \
			else if (op == NCCL_MIN)                                    \
				a[i] = b[i] < a[i] ? b[i] : a[i];                   \
			else                                                        \
				a[i] = (type)((wraps)a[i] + (wraps)b[i]);           \
	}                                                                           \
	static void scale_##name(void *data, size_t n, const void *scalar)          \
	{                                                                           \
		type *a = data, by;                                                 \
                                                                                    \
		memcpy(&by, scalar, sizeof(by));                                    \
		for (size_t i = 0; i < n; i++)                                      \
			a[i] = (type)((wraps)a[i] * (wraps)by);                     \
	}                                                                           \
	static void divide_##name(void *data, size_t n, int ranks)                  \
	{                                                                           \
		type *a = data;                                                     \
                                                                                    \
		for (size_t i = 0; i < n; i++)                                      \
			a[i] = (type)(a[i] / (type)ranks);                          \
	}

COMBINE(i8, int8_t, uint32_t)
COMBINE(u8, uint8_t, uint32_t)
COMBINE(i32, int32_t, uint32_t)
COMBINE(u32, uint32_t, uint32_t)
COMBINE(i64, int64_t, uint64_t)
COMBINE(u64, uint64_t, uint64_t)
COMBINE(f32, float, float)
COMBINE(f64, double, double)

/* ---- halves ---- */

static float float_of(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static float load_bf16(uint16_t h)
{
	return float_of((uint32_t)h << 16);
}

static uint16_t store_bf16(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	if (f != f)
		return 0x7fff;
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float load_f16(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, low = h & 0x3ff;
	float tiny;

	if (exponent == 31)
		return float_of(sign | 0x7f800000 | low << 13);
	if (exponent)
		return float_of(sign | (exponent + 112) << 23 | low << 13);
	tiny = ldexpf((float)low, -24);
	return sign ? -tiny : tiny;
}

static uint16_t store_f16(float f)
{
	uint16_t sign = signbit(f) ? 0x8000 : 0;
	float size = fabsf(f);
	int exponent;

	if (f != f)
		return 0x7fff;
	if (size >= 65520)
		return sign | 0x7c00;
	if (size < ldexpf(1, -14))
		return sign | (uint16_t)rintf(ldexpf(size, 24));
	frexpf(size, &exponent); /* rounding up to a power of two carries over */
	return sign | (uint16_t)(((exponent + 13) << 10) + (int)rintf(ldexpf(size, 11 - exponent)));
}

#define HALF(name)                                                                  \
	static void combine_##name(void *total, const void *with, size_t n, int op) \
	{                                                                           \
		uint16_t *a = total;                                                \
		const uint16_t *b = with;                                           \
		float x[PART], y[PART];                                             \
                                                                                    \
		for (size_t at = 0, m; at < n; at += m) {                           \
			m = n - at < PART ? n - at : PART;                          \
			for (size_t i = 0; i < m; i++) {                            \
				x[i] = load_##name(a[at + i]);                      \
				y[i] = load_##name(b[at + i]);                      \
			}                                                           \
			combine_f32(x, y, m, op);                                   \
			for (size_t i = 0; i < m; i++)                              \
				a[at + i] = store_##name(x[i]);                     \
		}                                                                   \
	}                                                                           \
	static void scale_##name(void *data, size_t n, const void *scalar)          \
	{                                                                           \
		uint16_t *a = data, by;                                             \
                                                                                    \
		memcpy(&by, scalar, sizeof(by));                                    \
		for (size_t i = 0; i < n; i++)                                      \
			a[i] = store_##name(load_##name(a[i]) * load_##name(by));   \
	}

HALF(bf16)
HALF(f16)

/* By NCCL's numbers of types. 8-bit floating point is sent, but not reduced. */
static const struct {
	size_t bytes;
	void (*combine)(void *total, const void *with, size_t n, int op);
	void (*scale)(void *data, size_t n, const void *scalar);
	void (*divide)(void *data, size_t n, int ranks);
} types[] = {
	{ 1, combine_i8, scale_i8, divide_i8 },
	{ 1, combine_u8, scale_u8, divide_u8 },
	{ 4, combine_i32, scale_i32, divide_i32 },
	{ 4, combine_u32, scale_u32, divide_u32 },
	{ 8, combine_i64, scale_i64, divide_i64 },
	{ 8, combine_u64, scale_u64, divide_u64 },
	{ 2, combine_f16, scale_f16, NULL },
	{ 4, combine_f32, scale_f32, divide_f32 },
	{ 8, combine_f64, scale_f64, divide_f64 },
	{ 2, combine_bf16, scale_bf16, NULL },
	{ 1, NULL, NULL, NULL },
	{ 1, NULL, NULL, NULL },
};

size_t nccl_type_bytes(int type)
{
	return type >= 0 && type < (int)(sizeof(types) / sizeof(types[0])) ? types[type].bytes : 0;
}

void nccl_combine(void *total, unsigned char *states, const void *with,
		  const unsigned char *with_states, size_t n, int type, int op)
{
	size_t size = nccl_type_bytes(type);

	for (size_t i = 0; i < n * size; i++)
		if (with_states[i] < states[i] || !types[type].combine)
			states[i] = types[type].combine ? with_states[i] : CONTENTS_UNKNOWN;
	if (types[type].combine)
		types[type].combine(total, with, n, op);
}

void nccl_scale(void *data, size_t n, int type, const void *scalar)
{
	if (types[type].scale)
		types[type].scale(data, n, scalar);
}

/* Averages: whole numbers are divided at the end, others multiplied at the beginning. */
bool nccl_is_whole(int type)
{
	return type < 6;
}

void nccl_divide(void *data, size_t n, int type, int ranks)
{
	if (types[type].divide)
		types[type].divide(data, n, ranks);
}

void nccl_one_over(void *scalar, int type, int ranks)
{
	float f = 1.0f / (float)ranks;
	double d = 1.0 / ranks;
	uint16_t half = type == 6 ? store_f16(f) : store_bf16(f);

	if (types[type].bytes == 2)
		memcpy(scalar, &half, sizeof(half));
	else if (types[type].bytes == 4)
		memcpy(scalar, &f, sizeof(f));
	else
		memcpy(scalar, &d, sizeof(d));
}
