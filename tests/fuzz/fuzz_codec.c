/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as event records, then as definitions: what decodes is encoded again and must decode to
 * the same.
 */
#include <stdlib.h>
#include <string.h>

#include "../../format/codec.h"
#include "../../format/varint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static struct gmt_codec in, out, back, out_columns, back_columns;

/* The same in columns, after all that came before. */
static void check_columns(const struct gmt_event *e)
{
	static uint8_t room[GMT_COLUMNS][GMT_EVENT_MAX];
	uint8_t *at[GMT_COLUMNS];
	struct cursor from[GMT_COLUMNS];
	struct gmt_event again;
	bool ok;

	for (unsigned i = 0; i < GMT_COLUMNS; i++)
		at[i] = room[i];
	gmt_encode_columns(&out_columns, e, at);
	for (unsigned i = 0; i < GMT_COLUMNS; i++)
		from[i] = (struct cursor){ room[i], at[i], false };
	ok = gmt_decode_columns(&back_columns, from, &again) == 0;
	for (unsigned i = 0; i < GMT_COLUMNS; i++)
		ok &= from[i].p == at[i];
	if (!ok || memcmp(e, &again, sizeof(again)) != 0)
		abort();
}

/* Any bytes as a payload in columns: read to its end, never beyond. */
static void any_columns(const uint8_t *data, size_t len)
{
	struct cursor columns[GMT_COLUMNS];
	struct gmt_event e;

	memset(&in, 0, sizeof(in));
	if (gmt_columns_open(columns, data, len))
		while (gmt_decode_columns(&in, columns, &e) == 0)
			;
}

static void check_event(const struct gmt_event *e)
{
	uint8_t buf[GMT_EVENT_MAX];
	struct gmt_event again;
	size_t n = gmt_encode_event(&out, e, buf);

	check_columns(e);
	if (n > GMT_EVENT_MAX || gmt_decode_event(&back, buf, n, &again) != (long)n ||
	    memcmp(e, &again, sizeof(again)) != 0)
		abort();
}

static void check_def(const struct gmt_def *d)
{
	size_t n = gmt_encoded_def_size(d);
	uint8_t *buf = malloc(n);
	struct gmt_def again;

	if (!buf || gmt_encode_def(d, buf) != n || gmt_decode_def(buf, n, &again) != (long)n ||
	    again.kind != d->kind || again.id != d->id || again.len != d->len ||
	    memcmp(again.payload, d->payload, d->len) != 0)
		abort();
	free(buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct gmt_event e;
	struct gmt_def d;
	long n;

	memset(&in, 0, sizeof(in));
	memset(&out, 0, sizeof(out));
	memset(&back, 0, sizeof(back));
	memset(&out_columns, 0, sizeof(out_columns));
	memset(&back_columns, 0, sizeof(back_columns));
	for (size_t at = 0; (n = gmt_decode_event(&in, data + at, len - at, &e)) > 0;
	     at += (size_t)n)
		check_event(&e);
	any_columns(data, len);
	for (size_t at = 0; (n = gmt_decode_def(data + at, len - at, &d)) > 0; at += (size_t)n)
		check_def(&d);
	return 0;
}
