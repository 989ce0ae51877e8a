/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads JSON in place: a value is a part of the text, and nothing is copied until a caller requests
 * it. Invalid JSON reads as missing values.
 */
#pragma once

#include "usual.h"

struct json {
	const char *s, *end; /* both NULL: missing */
};

struct json json_text(const char *s, size_t len);

/* The member of an object. */
struct json json_member(struct json object, const char *key);

/* The first and each further item of an array, or member of an object (*key is its name then). */
struct json json_first(struct json of, struct json *key);
struct json json_next(struct json of, struct json item, struct json *key);
size_t json_count(struct json of); /* its items or members */

/* The value at a path of names and item numbers, such as "traceEvents.0.args". */
struct json json_at(struct json v, const char *path);

double json_number(struct json v); /* true is 1; 0 if it is not a finite number */
uint64_t json_unsigned(struct json v);
int64_t json_signed(struct json v);

/* Copies the text of a string to buf, as much as fits; returns buf. */
const char *json_string(struct json v, char *buf, size_t room);
bool json_is(struct json v, const char *text); /* whether v is a string with this text */
