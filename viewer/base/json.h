/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads JSON in place: a value is a part of the text, and nothing is copied until a caller requests
 * it. Invalid JSON reads as missing values.
 */
#pragma once

#include "usual.h"

struct json {
	const char *s, *end; /* both NULL: not there */
};

struct json json_text(const char *s, size_t len);

/* The member of an object. */
struct json json_member(struct json object, const char *key);

/* The first and each further item of an array, or member of an object (*key is its name then). */
struct json json_first(struct json of, struct json *key);
struct json json_next(struct json of, struct json item, struct json *key);
size_t json_count(struct json of); /* its items or members */

/*
 * By the way to it, parts with a dot between them: NAME is a member, a number that item of an
 * array.
 */
struct json json_at(struct json v, const char *path);

double json_number(struct json v); /* true is 1; what is no finite number 0 */
uint64_t json_unsigned(struct json v);
int64_t json_signed(struct json v);

/* The text of a string, cut where the room ends; returns buf. */
const char *json_string(struct json v, char *buf, size_t room);
bool json_is(struct json v, const char *text); /* a string of exactly this text */
