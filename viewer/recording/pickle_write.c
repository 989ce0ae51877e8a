/* SPDX-License-Identifier: Apache-2.0 */
#include "pickle_write.h"

#include "../base/bytes.h"
#include "../base/emit_json.h"

#define BATCH 1000 /* elements of one APPENDS: readers keep them on a stack */

static void put(struct pickler *p, unsigned op, uint64_t n, unsigned bytes)
{
	fputc((int)op, p->f);
	for (unsigned i = 0; i < bytes; i++)
		fputc((int)(n >> 8 * i & 255), p->f);
}

void pickler_start(struct pickler *p, FILE *f)
{
	*p = (struct pickler){ .f = f };
	fwrite("\x80\x02", 1, 2, f);
}

void pickler_stop(struct pickler *p)
{
	fputc('.', p->f);
	map_free(&p->texts);
}

void pickler_int(struct pickler *p, int64_t n)
{
	if (n >= 0 && n < 256) {
		put(p, 'K', (uint64_t)n, 1);
	} else if (n >= 0 && n < 65536) {
		put(p, 'M', (uint64_t)n, 2);
	} else if (n >= INT32_MIN && n <= INT32_MAX) {
		put(p, 'J', (uint64_t)n, 4);
	} else {
		put(p, 0x8a, 8, 1);
		fwrite(&n, 1, sizeof(n), p->f);
	}
}

void pickler_beyond(struct pickler *p, uint64_t n)
{
	put(p, 0x8a, 9, 1);
	fwrite(&n, 1, sizeof(n), p->f);
	fputc(0, p->f);
}

void pickler_none(struct pickler *p)
{
	fputc('N', p->f);
}

void pickler_bool(struct pickler *p, bool b)
{
	fputc(b ? 0x88 : 0x89, p->f);
}

void pickler_float(struct pickler *p, double d)
{
	uint64_t bits;

	memcpy(&bits, &d, sizeof(bits));
	put(p, 'G', __builtin_bswap64(bits), 8);
}

uint32_t pickler_keep(struct pickler *p)
{
	if (p->kept < 256)
		put(p, 'q', p->kept, 1);
	else
		put(p, 'r', p->kept, 4);
	return p->kept++;
}

void pickler_again(struct pickler *p, uint32_t kept)
{
	if (kept < 256)
		put(p, 'h', kept, 1);
	else
		put(p, 'j', kept, 4);
}

/* Bytes that are no UTF-8 become the lone surrogates that Python's "surrogateescape" makes. */
static size_t write_utf8(FILE *f, const char *s, size_t len, bool count)
{
	size_t bytes = 0;

	while (len) {
		size_t n = emit_utf8(s, len);

		if (!count && n)
			fwrite(s, 1, n, f);
		else if (!count)
			fprintf(f, "\xed%c%c", 0xb0 | ((unsigned char)*s >> 6), 0x80 | (*s & 0x3f));
		bytes += n ? n : 3;
		n = n ? n : 1;
		s += n;
		len -= n;
	}
	return bytes;
}

/* The place for a new text's number in the memo. For a known text, writes its number and returns
 * NULL. */
static uint32_t *fresh_text(struct pickler *p, const char *s, size_t len)
{
	bool fresh;
	uint32_t *at = map_put(&p->texts, bytes_hash(BYTES_HASH ^ len, s, len), &fresh);

	if (!fresh)
		pickler_again(p, *at);
	return fresh ? at : NULL;
}

void pickler_text(struct pickler *p, const char *s, size_t len)
{
	uint32_t *kept = fresh_text(p, s, len);

	if (!kept)
		return;
	put(p, 'X', write_utf8(NULL, s, len, true), 4);
	write_utf8(p->f, s, len, false);
	*kept = pickler_keep(p);
}

void pickler_utf8(struct pickler *p, const char *s, size_t len)
{
	uint32_t *kept = fresh_text(p, s, len);

	if (!kept)
		return;
	put(p, 'X', len, 4);
	fwrite(s, 1, len, p->f);
	*kept = pickler_keep(p);
}

void pickler_word(struct pickler *p, const char *s)
{
	pickler_text(p, s, strlen(s));
}

void pickler_list(struct pickler *p)
{
	fputc(']', p->f);
}

void pickler_next(struct pickler *p, uint64_t index)
{
	if (index % BATCH)
		return;
	if (index)
		fputc('e', p->f);
	fputc('(', p->f);
}

void pickler_list_end(struct pickler *p, uint64_t count)
{
	if (count)
		fputc('e', p->f);
}

void pickler_dict(struct pickler *p)
{
	fwrite("}(", 1, 2, p->f);
}

void pickler_dict_end(struct pickler *p)
{
	fputc('u', p->f);
}

void pickler_mark(struct pickler *p)
{
	fputc('(', p->f);
}

void pickler_tuple(struct pickler *p, uint64_t count)
{
	static const int small[] = { ')', 0x85, 0x86, 0x87 };

	fputc(count < 4 ? small[count] : 't', p->f);
}

void pickler_word_at(struct pickler *p, const char *key, const char *s)
{
	pickler_word(p, key);
	pickler_word(p, s);
}

void pickler_int_at(struct pickler *p, const char *key, int64_t n)
{
	pickler_word(p, key);
	pickler_int(p, n);
}

void pickler_text_at(struct pickler *p, const char *key, const char *s, size_t len)
{
	pickler_word(p, key);
	pickler_text(p, s, len);
}
