/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the flatbuffers of Arrow messages. Nothing is trusted: what does not lie within the bytes
 * that were given is as if it were not there.
 */
#ifndef FLAT_H
#define FLAT_H

#include <stddef.h>
#include <stdint.h>

struct flat {
	const uint8_t *p;
	size_t len;
};

uint64_t flat_number(const struct flat *f, size_t at, unsigned bytes); /* 0 if it is not there */

/* A place is an offset in the bytes, 0 for none. */
size_t flat_root(const struct flat *f);
size_t flat_field(const struct flat *f, size_t table, unsigned field);
size_t flat_follow(const struct flat *f, size_t at); /* what the reference at `at` refers to */

/* A field that refers to a string or a vector: its first byte, and how many elements of `each`
 * bytes. */
size_t flat_vector(const struct flat *f, size_t table, unsigned field, size_t each, size_t *count);

#endif
