/* SPDX-License-Identifier: Apache-2.0 */
#include "lake_worth.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../base/plain_file.h"
#include "../recording/run_state.h"

#define EVENTS	"gpumemtrace.events"
#define DAMAGED "gpumemtrace.damaged"

bool lake_worth_more(const struct lake_worth *a, const struct lake_worth *b)
{
	return a->events != b->events ? a->events > b->events : b->damaged && !a->damaged;
}

static int count(void *ctx, const struct gmt_event *e)
{
	*(uint64_t *)ctx += e->kind == GMT_THINNED && e->size ? e->size : 1;
	return 0;
}

struct lake_worth lake_worth_of_file(const char *path)
{
	const struct gmt_tool tool = { .event = count };
	struct lake_worth worth = { 0 };
	struct gmt_reader *reader;
	int err;

	reader = gmt_reader_open(path, &err);
	if (!reader)
		return worth;
	gmt_reader_run(reader, 0, UINT64_MAX, &tool, &worth.events);
	worth.damaged =
		gmt_reader_info(reader)->damaged_blocks || gmt_reader_info(reader)->skipped_bytes;
	gmt_reader_close(reader);
	return worth;
}

struct lake_worth lake_worth_of(const struct recording *r, uint64_t events)
{
	return (struct lake_worth){ events, recording_state(r) == STATE_DAMAGED };
}

void lake_worth_note(struct parquet *table, const struct lake_worth *worth,
		     char digits[LAKE_WORTH_DIGITS])
{
	snprintf(digits, LAKE_WORTH_DIGITS, "%" PRIu64, worth->events);
	parquet_fact(table, EVENTS, digits);
	parquet_fact(table, DAMAGED, worth->damaged ? "1" : "0");
}

/* The table of recordings is one row: the file's last bytes are its footer, facts at the end. */
#define TAIL (1 << 16)

/* A path or a command may have these words too: the facts are behind all columns. */
static const char *last(const char *tail, size_t len, const char *key)
{
	const char *at = NULL, *next = memmem(tail, len, key, strlen(key));

	for (; next; next = memmem(at + 1, (size_t)(tail + len - at) - 1, key, strlen(key)))
		at = next;
	return at;
}

/* The number that stands behind the key: a byte for the field, one for its length, the digits. */
static bool fact(uint64_t *out, const char *tail, size_t len, const char *key)
{
	const char *at = last(tail, len, key), *value;
	char digits[LAKE_WORTH_DIGITS];
	size_t n;

	if (!at || (size_t)(tail + len - at) < strlen(key) + 2)
		return false;
	value = at + strlen(key) + 2;
	n = (uint8_t)value[-1];
	if (!n || n >= sizeof(digits) || n > (size_t)(tail + len - value))
		return false;
	memcpy(digits, value, n);
	digits[n] = 0;
	*out = strtoull(digits, NULL, 10);
	return true;
}

bool lake_worth_read(struct lake_worth *out, const char *lake, const struct lake_place *place)
{
	char path[PATH_MAX], *tail;
	uint64_t damaged;
	bool known = false;
	size_t len;
	FILE *f;

	if (!place->id[0] || !lake_path(path, lake, lake_tables[LAKE_ranks].name, place))
		return false;
	f = file_open_stream(path);
	if (!f)
		return false;
	tail = malloc(TAIL);
	if (tail) {
		if (fseek(f, -TAIL, SEEK_END))
			rewind(f); /* shorter than that */
		len = fread(tail, 1, TAIL, f);
		known = fact(&out->events, tail, len, EVENTS) && fact(&damaged, tail, len, DAMAGED);
		out->damaged = known && damaged;
	}
	free(tail);
	fclose(f);
	return known;
}
