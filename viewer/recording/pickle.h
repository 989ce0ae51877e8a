/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a Python pickle of plain data (protocols 2 to 5) without executing anything: numbers,
 * texts, lists, tuples and dictionaries. Any other opcode is an error. Memory use is limited by the
 * length of the input. A list can contain itself, so code that follows values must limit its depth.
 */
#pragma once

#include "../base/usual.h"

enum pickle_type {
	PICKLE_NONE = 1,
	PICKLE_BOOL,
	PICKLE_INT,
	PICKLE_FLOAT,
	PICKLE_TEXT, /* texts and bytes, which point into the input, without a terminating zero */
	PICKLE_LIST, /* tuples too */
	PICKLE_DICT,
};

/* The pickled form of a value, if the type leaves it open. */
enum pickle_form {
	PICKLE_PLAIN,
	PICKLE_TUPLE,  /* a list */
	PICKLE_BYTES,  /* a text */
	PICKLE_BEYOND, /* a number above INT64_MAX */
};

struct pickle_value {
	uint16_t type, form;
	uint32_t count; /* bytes of a text, elements of a list, pairs of a dictionary */
	union {
		int64_t number; /* for PICKLE_BEYOND the bits of an unsigned one */
		double real;
		const char *text;
		uint32_t *items; /* indices of values; in a dictionary key, value, key, value... */
	};
};

struct pickle {
	struct pickle_value *values;
	size_t count, room;
	uint32_t root;
	char error[240]; /* what was wrong, for a sentence; "" if nothing */
};

/* False: p->error says why. data must outlive p. */
bool pickle_read(struct pickle *p, const void *data, size_t len);
void pickle_free(struct pickle *p);

const struct pickle_value *pickle_at(const struct pickle *p, uint32_t ref);
/* Element i of a list; NULL if v is no list or shorter. v can be NULL, here and below. */
const struct pickle_value *pickle_item(const struct pickle *p, const struct pickle_value *v,
				       uint32_t i);
/* The value of a key, NULL if there is none. Only the last 64 pairs are searched. */
const struct pickle_value *pickle_get(const struct pickle *p, const struct pickle_value *dict,
				      const char *key);

/* Members of a dictionary by type; a missing one, or one of another type, reads as 0 or NULL. */
uint64_t pickle_number(const struct pickle *p, const struct pickle_value *dict, const char *key);
const struct pickle_value *pickle_text(const struct pickle *p, const struct pickle_value *dict,
				       const char *key);
const struct pickle_value *pickle_list(const struct pickle *p, const struct pickle_value *dict,
				       const char *key);
bool pickle_is(const struct pickle_value *text, const char *s);
bool pickle_ends(const struct pickle_value *text, const char *s);
