/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three generations of line tables: pairs of unsigned address and signed line steps (to 3.9), the
 * same with a mark for "no line" and half-open ranges (3.10), entries of variable length (3.11 on).
 */
#include "pylines.h"

#include <stdbool.h>

#define PYTHON_3_10 0x30a
#define PYTHON_3_11 0x30b
#define NO_LINE	    (-128)

struct cursor {
	const unsigned char *p, *end;
};

static unsigned lines_3_9(struct cursor c, long line, long lasti)
{
	for (long address = 0; c.end - c.p >= 2; c.p += 2) {
		address += c.p[0];
		if (address > lasti)
			break;
		line += (signed char)c.p[1];
	}
	return line > 0 ? line : 0;
}

static unsigned lines_3_10(struct cursor c, long line, long lasti)
{
	for (long address = 0; c.end - c.p >= 2; c.p += 2) {
		int step = (signed char)c.p[1];

		address += c.p[0];
		if (step != NO_LINE)
			line += step;
		if (lasti < address)
			return step == NO_LINE || line < 0 ? 0 : line;
	}
	return line > 0 ? line : 0;
}

/* Groups of six bits, lowest first, bit 6 says that one more follows. */
static bool varint(struct cursor *c, unsigned long *out)
{
	unsigned shift = 0;

	*out = 0;
	while (c->p < c->end && shift < 36) {
		unsigned char b = *c->p++;

		*out |= (unsigned long)(b & 63) << shift;
		shift += 6;
		if (!(b & 64))
			return true;
	}
	return false;
}

static bool signed_varint(struct cursor *c, long *out)
{
	unsigned long v;

	if (!varint(c, &v))
		return false;
	*out = v & 1 ? -(long)(v >> 1) : (long)(v >> 1);
	return true;
}

/* Reads one entry's line step; *has: the entry has a line at all. False: the table is cut off. */
static bool entry(struct cursor *c, unsigned code, long *step, bool *has)
{
	unsigned long skipped;

	*step = 0;
	*has = code != 15;
	switch (code) {
	case 15:
		return true;
	case 14:
		return signed_varint(c, step) && varint(c, &skipped) && varint(c, &skipped) &&
		       varint(c, &skipped);
	case 13:
		return signed_varint(c, step);
	case 12:
	case 11:
	case 10:
		*step = (long)code - 10;
		c->p += 2;
		return c->p <= c->end;
	default:
		c->p += 1;
		return c->p <= c->end;
	}
}

static unsigned lines_3_11(struct cursor c, long line, long lasti)
{
	long address = 0, step;
	bool has;

	while (c.p < c.end) {
		unsigned char head = *c.p++;
		long next = address + 2 * ((head & 7) + 1);

		if (!(head & 128) || !entry(&c, head >> 3 & 15, &step, &has))
			break;
		line += step;
		if (lasti < next)
			return has && line > 0 ? line : 0;
		address = next;
	}
	return line > 0 ? line : 0;
}

unsigned gmt_pylines_line(unsigned python, unsigned first_line, const void *table, size_t len,
			  long lasti)
{
	struct cursor c = { table, (const unsigned char *)table + len };

	if (lasti < 0)
		return first_line;
	if (python >= PYTHON_3_11)
		return lines_3_11(c, first_line, lasti);
	if (python == PYTHON_3_10)
		return lines_3_10(c, first_line, lasti);
	return lines_3_9(c, first_line, lasti);
}
