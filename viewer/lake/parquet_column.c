/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet_column.h"

#include <string.h>

enum { MOST_ENTRIES = 1 << 15, TRIED = 1024 };

/* ---- values ---- */

static void set_bit(struct bytes *b, uint64_t at)
{
	while (b->len <= at / 8)
		bytes_add(b, &(uint8_t){ 0 }, 1);
	b->p[at / 8] |= (uint8_t)(1u << at % 8);
}

static void is_there(struct column_values *c)
{
	set_bit(&c->valid, c->rows);
	c->given++;
}

/* Ends the dictionary, which costs more than it saves if values do not repeat. */
static void no_more(struct column_values *c)
{
	c->plain = c->entries > MOST_ENTRIES ||
		   (c->entries > TRIED && (uint64_t)c->entries * 2 > c->given);
}

static void number_is(struct column_values *c, uint32_t number)
{
	bytes_add(&c->numbers, &number, sizeof(number));
}

static void known_number(struct column_values *c, int64_t n)
{
	bool fresh;
	uint32_t *number = map_put(&c->seen, (uint64_t)n, &fresh);

	if (fresh) {
		*number = c->entries++;
		bytes_add(&c->dictionary, &n, sizeof(n));
	}
	number_is(c, *number);
	no_more(c);
}

void column_number(struct column_values *c, int64_t n)
{
	if (!c->given || n < c->least)
		c->least = n;
	if (!c->given || n > c->most)
		c->most = n;
	is_there(c);
	bytes_add(&c->values, &n, sizeof(n));
	if (!c->plain)
		known_number(c, n);
}

void column_flag(struct column_values *c, bool yes)
{
	c->plain = true;
	if (yes)
		set_bit(&c->values, c->given);
	is_there(c);
}

/* Two texts with equal hashes end the dictionary. */
static void known_text(struct column_values *c, size_t at)
{
	const uint8_t *text = c->values.p + at;
	size_t len = c->values.len - at;
	uint64_t hash = bytes_hash(BYTES_HASH, text, len);
	bool fresh;
	uint32_t *number = map_put(&c->seen, hash ^ hash >> 32, &fresh), place;

	if (fresh) {
		*number = c->entries++;
		place = (uint32_t)c->dictionary.len;
		bytes_add(&c->places, &place, sizeof(place));
		bytes_add(&c->dictionary, text, len);
	} else {
		memcpy(&place, c->places.p + *number * sizeof(place), sizeof(place));
		if (place + len > c->dictionary.len || memcmp(c->dictionary.p + place, text, len)) {
			c->plain = true;
			return;
		}
	}
	number_is(c, *number);
	no_more(c);
}

void column_text(struct column_values *c, const char *s, size_t len)
{
	size_t at = c->values.len;
	uint32_t size = 0;

	is_there(c);
	bytes_add(&c->values, &size, sizeof(size));
	size = (uint32_t)bytes_add_text(&c->values, s, len);
	memcpy(c->values.p + at, &size, sizeof(size));
	if (!c->plain)
		known_text(c, at);
}

void column_row(struct column_values *c)
{
	c->rows++;
}

/* ---- the page ---- */

/* A run of one value. Most columns need only this, because all rows have a value. */
static void add_run(struct bytes *out, uint64_t count, unsigned value)
{
	bytes_varint(out, count << 1);
	bytes_add(out, &(uint8_t){ (uint8_t)value }, 1);
}

/* One bit per row: it has a value. */
static void add_levels(struct column_values *c, struct bytes *page)
{
	size_t at = page->len, groups = (c->rows + 7) / 8;
	uint32_t len = 0;

	bytes_add(page, &len, sizeof(len));
	if (c->given == c->rows || !c->given) {
		add_run(page, c->rows, c->given > 0);
	} else {
		while (c->valid.len < groups)
			bytes_add(&c->valid, &(uint8_t){ 0 }, 1);
		bytes_varint(page, groups << 1 | 1);
		bytes_add(page, c->valid.p, groups);
	}
	len = (uint32_t)(page->len - at - sizeof(len));
	memcpy(page->p + at, &len, sizeof(len));
}

static unsigned width_of(uint32_t entries)
{
	unsigned width = 1;

	while (width < 32 && entries > 1u << width)
		width++;
	return width;
}

static void add_numbers(const struct column_values *c, struct bytes *page)
{
	unsigned width = width_of(c->entries), bits = 0;
	uint64_t groups = (c->given + 7) / 8, waiting = 0;
	uint32_t number;

	bytes_add(page, &(uint8_t){ (uint8_t)width }, 1);
	if (c->entries == 1) {
		add_run(page, c->given, 0);
		return;
	}
	bytes_varint(page, groups << 1 | 1);
	for (uint64_t i = 0; i < groups * 8; i++) {
		number = 0;
		if (i < c->given)
			memcpy(&number, c->numbers.p + i * sizeof(number), sizeof(number));
		waiting |= (uint64_t)number << bits;
		for (bits += width; bits >= 8; bits -= 8, waiting >>= 8)
			bytes_add(page, &(uint8_t){ (uint8_t)waiting }, 1);
	}
}

void column_page(struct column_values *c, struct bytes *page, bool *dictionary)
{
	*dictionary = !c->plain && c->entries;
	page->len = 0;
	add_levels(c, page);
	if (*dictionary)
		add_numbers(c, page);
	else if (c->type == PARQUET_FLAG)
		for (uint64_t i = 0; i < (c->given + 7) / 8; i++)
			bytes_add(page, i < c->values.len ? &c->values.p[i] : &(uint8_t){ 0 }, 1);
	else
		bytes_add(page, c->values.p, c->values.len);
}

void column_clear(struct column_values *c)
{
	map_free(&c->seen);
	c->seen = (struct map){ 0 };
	c->values.len = c->valid.len = c->dictionary.len = c->numbers.len = c->places.len = 0;
	c->entries = 0;
	c->plain = false;
	c->given = c->rows = 0;
}

void column_free(struct column_values *c)
{
	column_clear(c);
	bytes_free(&c->values);
	bytes_free(&c->valid);
	bytes_free(&c->dictionary);
	bytes_free(&c->numbers);
	bytes_free(&c->places);
}
