/* SPDX-License-Identifier: Apache-2.0 */
#include "flat.h"

uint64_t flat_number(const struct flat *f, size_t at, unsigned bytes)
{
	uint64_t n = 0;

	if (!at || at > f->len || f->len - at < bytes)
		return 0;
	for (unsigned i = 0; i < bytes; i++)
		n |= (uint64_t)f->p[at + i] << 8 * i;
	return n;
}

static size_t place(const struct flat *f, size_t at, uint64_t offset)
{
	return offset && offset < f->len && at < f->len - offset ? at + (size_t)offset : 0;
}

size_t flat_follow(const struct flat *f, size_t at)
{
	return at ? place(f, at, flat_number(f, at, 4)) : 0;
}

/* The one reference at offset 0. */
size_t flat_root(const struct flat *f)
{
	const struct flat whole = { f->p, f->len < 8 ? 0 : 4 };
	uint64_t n = 0;

	for (size_t i = 0; i < whole.len; i++)
		n |= (uint64_t)whole.p[i] << 8 * i;
	return place(f, 0, n);
}

/* Before a table stands how far before it its offsets are. */
size_t flat_field(const struct flat *f, size_t table, unsigned field)
{
	int64_t back = (int32_t)flat_number(f, table, 4);
	size_t offsets;

	if (!table || back <= 0 || (uint64_t)back >= table)
		return 0;
	offsets = table - (size_t)back;
	if (flat_number(f, offsets, 2) < 4 + 2 * (field + 1u))
		return 0;
	return place(f, table, flat_number(f, offsets + 4 + 2 * field, 2));
}

size_t flat_vector(const struct flat *f, size_t table, unsigned field, size_t each, size_t *count)
{
	size_t at = flat_follow(f, flat_field(f, table, field));

	*count = (size_t)flat_number(f, at, 4);
	if (!at || f->len - at < 4 || *count > (f->len - at - 4) / each) {
		*count = 0;
		return 0;
	}
	return at + 4;
}
