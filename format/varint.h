/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of variable length, and a cursor that cannot leave its buffer: a read past the end gives
 * 0 and sets `bad`. Pure; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VARINT_MOST 10 /* bytes of the longest varint */

/* Seven bits a byte, low ones first, top bit = more follows. */
static inline uint8_t *put_varint(uint8_t *p, uint64_t v)
{
	while (v >= 0x80) {
		*p++ = (uint8_t)v | 0x80;
		v >>= 7;
	}
	*p++ = (uint8_t)v;
	return p;
}

static inline size_t varint_size(uint64_t v)
{
	size_t n = 1;

	for (; v >= 0x80; v >>= 7)
		n++;
	return n;
}

static inline uint64_t zigzag(uint64_t delta)
{
	return delta << 1 ^ (0 - (delta >> 63));
}

static inline uint64_t unzigzag(uint64_t v)
{
	return v >> 1 ^ (0 - (v & 1));
}

/* A byte with the bit and six low bits of the number, then a varint with its other bits if any. */
static inline uint8_t *put_with_bit(uint8_t *p, unsigned bit, uint64_t n)
{
	*p = (uint8_t)(bit | (n & 63) << 1 | (n > 63) << 7);
	return n > 63 ? put_varint(p + 1, n >> 6) : p + 1;
}

/* Byte counts and addresses. Bit 0: the value is in units of 1 (1) or of 512 (0). */
static inline uint8_t *put_packed(uint8_t *p, uint64_t v)
{
	bool ones = (v & 511) != 0;

	return put_with_bit(p, ones, ones ? v : v >> 9);
}

/* A difference of object addresses. Bit 0: it is in units of 1 (1) or of 16 (0). */
static inline uint8_t *put_object_step(uint8_t *p, uint64_t delta)
{
	bool ones = (delta & 15) != 0;

	return put_with_bit(p, ones, zigzag(ones ? delta : (uint64_t)((int64_t)delta >> 4)));
}

struct cursor {
	const uint8_t *p, *end;
	bool bad;
};

static inline uint8_t get_byte(struct cursor *c)
{
	if (c->p < c->end)
		return *c->p++;
	c->bad = true;
	return 0;
}

__attribute__((noinline, unused)) static uint64_t get_long_varint(struct cursor *c)
{
	uint64_t v = 0;

	if (c->end - c->p > 1 && c->p[1] < 0x80) {
		c->p += 2;
		return (c->p[-2] & 0x7fu) | (uint64_t)c->p[-1] << 7;
	}
	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t b = get_byte(c);

		if (shift == 63 && b > 1)
			break;
		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			return v;
	}
	c->bad = true;
	return 0;
}

/* Most are one byte long, and most others two. */
static inline uint64_t get_varint(struct cursor *c)
{
	return c->p < c->end && *c->p < 0x80 ? *c->p++ : get_long_varint(c);
}

static inline uint32_t get_varint32(struct cursor *c)
{
	uint64_t v = get_varint(c);

	if (v > UINT32_MAX)
		c->bad = true;
	return (uint32_t)v;
}

static inline uint64_t get_with_bit(struct cursor *c, bool *bit)
{
	uint8_t b = get_byte(c);
	uint64_t high = b & 0x80 ? get_varint(c) : 0;

	if (high >> 58)
		c->bad = true;
	*bit = b & 1;
	return (uint64_t)(b >> 1 & 63) | high << 6;
}

static inline uint64_t get_packed(struct cursor *c)
{
	bool ones;
	uint64_t n = get_with_bit(c, &ones);

	if (!ones && n >> 55)
		c->bad = true;
	return ones ? n : n << 9;
}

static inline uint64_t get_object_step(struct cursor *c)
{
	bool ones;
	uint64_t delta = unzigzag(get_with_bit(c, &ones));

	return ones ? delta : delta << 4;
}
