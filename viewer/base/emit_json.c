/* SPDX-License-Identifier: Apache-2.0 */
#include "emit_json.h"

#include <stdint.h>

/* Bytes of the UTF-8 character at s, 0 if there is none (overlong forms, surrogates and values
 * beyond U+10FFFF are none). */
static size_t utf8(const unsigned char *s, size_t len)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc0 ? 2 : 0;
	uint32_t c;

	if (n < 2)
		return n;
	if (n > len || s[0] > 0xf4)
		return 0;
	c = s[0] & (0xff >> (n + 1));
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	return c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : n;
}

size_t emit_utf8(const char *s, size_t len)
{
	return utf8((const unsigned char *)s, len);
}

/* Bytes of what a terminal can be given, 0 for anything that may move its cursor or worse: C0, C1,
 * what is no UTF-8. */
static size_t plain(const unsigned char *s, size_t len)
{
	size_t n = utf8(s, len);

	if ((n == 1 && (*s < 32 || *s == 0x7f)) || (n == 2 && s[0] == 0xc2 && s[1] < 0xa0))
		return 0;
	return n;
}

size_t emit_plain_char(const char *s, size_t len)
{
	return plain((const unsigned char *)s, len);
}

static void json_byte(FILE *f, unsigned char c)
{
	static const char named[32] = {
		['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'
	};

	if (c == '"' || c == '\\')
		fprintf(f, "\\%c", c);
	else if (c < 32 && named[c])
		fprintf(f, "\\%c", named[c]);
	else if (c < 32 || c == 0x7f)
		fprintf(f, "\\u%04x", c);
	else if (c >= 0x80)
		fprintf(f, "\\udc%02x", c);
	else
		fputc(c, f);
}

void emit_json_string(FILE *f, const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s;

	fputc('"', f);
	while (len) {
		size_t n = utf8(p, len);

		if (n == 2 && !plain(p, n))
			fprintf(f, "\\u%04x",
				p[1]); /* U+0080 to U+009F: a terminal obeys them too */
		else if (n > 1)
			fwrite(p, 1, n, f);
		else
			json_byte(f, *p);
		n = n ? n : 1;
		p += n;
		len -= n;
	}
	fputc('"', f);
}

void emit_plain_string(FILE *f, const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s;

	while (len) {
		size_t n = plain(p, len);

		if (n)
			fwrite(p, 1, n, f);
		else
			fprintf(f, "\\x%02x", *p);
		n = n ? n : 1;
		p += n;
		len -= n;
	}
}

size_t emit_plain_width(const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t width = 0;

	while (len) {
		size_t n = plain(p, len);

		width += n ? 1 : 4;
		n = n ? n : 1;
		p += n;
		len -= n;
	}
	return width;
}
