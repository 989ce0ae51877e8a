/* SPDX-License-Identifier: Apache-2.0 */
#include "emit_json.h"

/* Bytes of the UTF-8 character at s, 0 if it is invalid, which includes overlong forms, surrogates
 * and values beyond U+10FFFF. */
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

static uint32_t code_point(const unsigned char *s, size_t n)
{
	uint32_t c = n == 1 ? s[0] : s[0] & (0xff >> (n + 1));

	for (size_t i = 1; i < n; i++)
		c = c << 6 | (s[i] & 0x3f);
	return c;
}

/* Invisible characters: they change the direction of the text behind them, end a line, or have no
 * width, so that one text can look like another. Joiners (U+200C, U+200D) are part of words. */
static bool is_unseen(uint32_t c)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = { { 0x061c, 0x061c }, { 0x180e, 0x180e }, { 0x200b, 0x200b },
		       { 0x200e, 0x200f }, { 0x2028, 0x202e }, { 0x2060, 0x206f },
		       { 0xfeff, 0xfeff }, { 0xfff9, 0xfffb }, { 0xe0000, 0xe007f } };

	return ANY_OF(x, ranges, sizeof(ranges) / sizeof(ranges[0]), c >= x->first && c <= x->last);
}

/* Bytes of the character at s, or 0 if a terminal must not get it, because it might move the cursor
 * or worse: control characters (C0 and C1), invalid UTF-8, invisible characters. */
static size_t plain(const unsigned char *s, size_t len)
{
	size_t n = utf8(s, len);

	if ((n == 1 && (*s < 32 || *s == 0x7f)) || (n == 2 && s[0] == 0xc2 && s[1] < 0xa0))
		return 0;
	return n > 1 && is_unseen(code_point(s, n)) ? 0 : n;
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

static void json_number(FILE *f, uint32_t c)
{
	if (c > 0xffff)
		fprintf(f, "\\u%04x\\u%04x", 0xd7c0 + (c >> 10), 0xdc00 + (c & 0x3ff));
	else
		fprintf(f, "\\u%04x", c);
}

void emit_json_string(FILE *f, const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s;

	fputc('"', f);
	while (len) {
		size_t n = utf8(p, len);

		if (n > 1 && !plain(p, n))
			json_number(f, code_point(p, n)); /* a terminal would obey these */
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

size_t emit_escape(char out[EMIT_ESCAPE], const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t n = utf8(p, len);
	uint32_t c = n > 1 ? code_point(p, n) : 0;

	if (c < 0xa0) {
		snprintf(out, EMIT_ESCAPE, "\\x%02x", *p);
		return 1;
	}
	snprintf(out, EMIT_ESCAPE, c > 0xffff ? "\\U%08x" : "\\u%04x", c);
	return n;
}

void emit_plain_string(FILE *f, const char *s, size_t len)
{
	char escape[EMIT_ESCAPE];

	while (len) {
		size_t n = emit_plain_char(s, len);

		if (n) {
			fwrite(s, 1, n, f);
		} else {
			n = emit_escape(escape, s, len);
			fputs(escape, f);
		}
		s += n;
		len -= n;
	}
}

size_t emit_plain_width(const char *s, size_t len)
{
	char escape[EMIT_ESCAPE];
	size_t width = 0;

	while (len) {
		size_t n = emit_plain_char(s, len);

		width++;
		if (!n) {
			n = emit_escape(escape, s, len);
			width += strlen(escape) - 1;
		}
		s += n;
		len -= n;
	}
	return width;
}
