/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <math.h>

static const struct json none;

static const char *skip_space(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r'))
		p++;
	return p;
}

/* Returns the position behind the string that begins at p, or NULL. */
static const char *string_end(const char *p, const char *end)
{
	for (p++; p < end && *p != '"'; p++)
		if (*p == '\\' && ++p == end)
			return NULL;
	return p < end ? p + 1 : NULL;
}

/* Returns the position behind the value that begins at p, or NULL. */
static const char *value_end(const char *p, const char *end)
{
	size_t depth = 0;

	do {
		if (p >= end)
			return NULL;
		if (*p == '"') {
			p = string_end(p, end);
			if (!p)
				return NULL;
			continue;
		}
		if (*p == '{' || *p == '[') {
			depth++;
		} else if (*p == '}' || *p == ']') {
			if (!depth--)
				return NULL;
		} else if (!depth) {
			while (p < end && !strchr(",]} \n\t\r", *p))
				p++;
			return p;
		}
		p++;
	} while (depth);
	return p;
}

static struct json value(const char *p, const char *end)
{
	const char *behind;

	p = skip_space(p, end);
	behind = p < end ? value_end(p, end) : NULL;
	return behind && behind > p ? (struct json){ p, behind } : none;
}

struct json json_text(const char *s, size_t len)
{
	return s ? value(s, s + len) : none;
}

/* Reads an item of an array, or a name and its value. */
static struct json entry(struct json of, const char *p, struct json *key)
{
	struct json v = value(p, of.end);

	if (key)
		*key = *of.s == '{' ? v : none;
	if (*of.s == '[')
		return v;
	if (!v.s || *v.s != '"')
		return none;
	p = skip_space(v.end, of.end);
	return p < of.end && *p == ':' ? value(p + 1, of.end) : none;
}

struct json json_first(struct json of, struct json *key)
{
	if (!of.s || (*of.s != '[' && *of.s != '{'))
		return none;
	return entry(of, of.s + 1, key);
}

struct json json_next(struct json of, struct json item, struct json *key)
{
	const char *p;

	if (!of.s || !item.s)
		return none;
	p = skip_space(item.end, of.end);
	return p < of.end && *p == ',' ? entry(of, p + 1, key) : none;
}

size_t json_count(struct json of)
{
	size_t n = 0;

	for (struct json v = json_first(of, NULL); v.s; v = json_next(of, v, NULL))
		n++;
	return n;
}

static bool same(struct json v, const char *text, size_t len)
{
	return v.s && *v.s == '"' && (size_t)(v.end - v.s) == len + 2 &&
	       !memcmp(v.s + 1, text, len);
}

bool json_is(struct json v, const char *text)
{
	return same(v, text, strlen(text));
}

static struct json member(struct json object, const char *name, size_t len)
{
	struct json key, v;

	if (!object.s || *object.s != '{')
		return none;
	for (v = json_first(object, &key); v.s; v = json_next(object, v, &key))
		if (same(key, name, len))
			return v;
	return none;
}

struct json json_member(struct json object, const char *key)
{
	return member(object, key, strlen(key));
}

static struct json item_number(struct json array, size_t n)
{
	struct json v = json_first(array, NULL);

	while (v.s && n--)
		v = json_next(array, v, NULL);
	return v;
}

struct json json_at(struct json v, const char *path)
{
	while (*path && v.s) {
		size_t len = strcspn(path, ".");

		if (*v.s == '[')
			v = item_number(v, strtoul(path, NULL, 10));
		else
			v = member(v, path, len);
		path += len + (path[len] == '.');
	}
	return v;
}

/* Copies the digits, because nothing might end the number in the text. */
static void copy_number(struct json v, char buf[32])
{
	size_t len = v.s ? (size_t)(v.end - v.s) : 0;

	len = len < 31 ? len : 31;
	memcpy(buf, v.s ? v.s : "", len);
	buf[len] = 0;
}

double json_number(struct json v)
{
	char buf[32];
	double n;

	copy_number(v, buf);
	n = !strcmp(buf, "true") ? 1 : strtod(buf, NULL);
	return isfinite(n) ? n : 0;
}

uint64_t json_unsigned(struct json v)
{
	char buf[32];

	copy_number(v, buf);
	return !strcmp(buf, "true") ? 1 : strtoull(buf, NULL, 10);
}

int64_t json_signed(struct json v)
{
	char buf[32];

	copy_number(v, buf);
	return strtoll(buf, NULL, 10);
}

static unsigned hex(const char *p)
{
	char digits[5] = { p[0], p[1], p[2], p[3], 0 };

	return (unsigned)strtoul(digits, NULL, 16);
}

/* The low surrogate "\udXXX" at p, or 0; JSON writes characters beyond U+FFFF as two surrogates. */
static unsigned second_half(const char *p, const char *end)
{
	unsigned c = end - p > 6 && p[0] == '\\' && p[1] == 'u' ? hex(p + 2) : 0;

	return c >= 0xdc00 && c <= 0xdfff ? c : 0;
}

/* Converts a code point to UTF-8; U+DC00 to U+DCFF stand for bytes that are not valid text. */
static size_t put_utf8(unsigned c, char out[4])
{
	if (c < 0x80 || (c >= 0xdc00 && c <= 0xdcff)) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c >= 0x10000) {
		out[0] = (char)(0xf0 | c >> 18);
		out[1] = (char)(0x80 | (c >> 12 & 0x3f));
		out[2] = (char)(0x80 | (c >> 6 & 0x3f));
		out[3] = (char)(0x80 | (c & 0x3f));
		return 4;
	}
	out[0] = (char)(0xe0 | c >> 12);
	out[1] = (char)(0x80 | (c >> 6 & 0x3f));
	out[2] = (char)(0x80 | (c & 0x3f));
	return 3;
}

const char *json_string(struct json v, char *buf, size_t room)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	size_t n = 0;

	for (const char *p = v.s && *v.s == '"' ? v.s + 1 : v.end;
	     p && p + 1 < v.end && n + 4 < room; p++) {
		const char *known;

		if (*p != '\\') {
			buf[n++] = *p;
			continue;
		}
		p++;
		known = *p ? strchr(from, *p) : NULL;
		if (*p == 'u' && v.end - p > 5) {
			unsigned c = hex(p + 1), second = second_half(p + 5, v.end);
			bool two = c >= 0xd800 && c < 0xdc00 && second;

			c = two ? 0x10000 + ((c & 0x3ff) << 10 | (second & 0x3ff)) : c;
			n += put_utf8(c, buf + n);
			p += two ? 10 : 4;
		} else {
			buf[n++] = known ? to[known - from] : *p;
		}
	}
	buf[n] = 0;
	return buf;
}
