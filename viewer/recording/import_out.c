/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the events of an import in order, and the definitions that they need. */
#include "../../format/record.h"
#include "../base/arithmetic.h"
#include "import_parts.h"

#define TEXT_MAX (16u * 1024)

void import_def(struct import *im, uint32_t kind, uint32_t id, const void *payload, size_t len)
{
	struct gmt_def d = { kind, id, (uint32_t)len, payload };
	int rc = gmt_writer_def(im->w, &d);

	if (rc && !im->err)
		im->err = rc;
}

uint32_t import_string(struct import *im, const char *s, size_t len)
{
	bool fresh;
	uint32_t *at;

	len = arithmetic_least(len, TEXT_MAX);
	at = map_put(&im->strings, map_hash(len, s, len), &fresh);
	if (fresh) {
		*at = ++im->string_count;
		import_def(im, GMT_DEF_STRING, *at, s, len);
	}
	return *at;
}

void import_event(struct import *im, struct gmt_event e)
{
	int rc;

	e.seq = ++im->seq;
	e.time_ns = im->now;
	rc = gmt_writer_event(im->w, &e);
	if (rc && !im->err)
		im->err = rc;
}

void import_meta_bytes(struct import *im, const char *key, const char *value, size_t len)
{
	char payload[512];
	struct gmt_def_meta head = { (uint16_t)strlen(key) };
	size_t at = sizeof(head);

	memcpy(payload, &head, sizeof(head));
	memcpy(payload + at, key, head.key_len);
	at += head.key_len;
	len = arithmetic_least(len, sizeof(payload) - at);
	memcpy(payload + at, value, len);
	import_def(im, GMT_DEF_META, 0, payload, at + len);
}

static void format_meta(struct import *im, const char *key, const char *format, va_list args)
{
	char value[400];
	int n = vsnprintf(value, sizeof(value), format, args);

	if (n > 0)
		import_meta_bytes(im, key, value,
				  (size_t)n < sizeof(value) ? (size_t)n : sizeof(value) - 1);
}

void import_meta(struct import *im, const char *key, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	format_meta(im, key, format, args);
	va_end(args);
}

void import_note(struct import *im, const char *format, ...)
{
	char key[16];
	va_list args;

	snprintf(key, sizeof(key), "note.%u", ++im->notes);
	va_start(args, format);
	format_meta(im, key, format, args);
	va_end(args);
}

/* A pickle can contain one list at many places, so the elements read in all are limited. */

bool import_visit(struct import *im)
{
	if (im->budget) {
		im->budget--;
		return true;
	}
	im->error = "the same lists stand in it again and again";
	return false;
}

void import_add_item(struct import *im, struct import_item item)
{
	*need_item(im->items, im->item_count, im->item_room) = item;
}
