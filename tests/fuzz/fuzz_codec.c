/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as event records, then as definitions: what decodes is encoded again and must decode to
 * the same.
 */
#include <stdlib.h>
#include <string.h>

#include "../../format/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static struct gmt_codec in, out, back;

static void check_event(const struct gmt_event *e)
{
	uint8_t buf[GMT_EVENT_MAX];
	struct gmt_event again;
	size_t n = gmt_encode_event(&out, e, buf);

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
	for (size_t at = 0; (n = gmt_decode_event(&in, data + at, len - at, &e)) > 0;
	     at += (size_t)n)
		check_event(&e);
	for (size_t at = 0; (n = gmt_decode_def(data + at, len - at, &d)) > 0; at += (size_t)n)
		check_def(&d);
	return 0;
}
