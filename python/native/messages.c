/* SPDX-License-Identifier: Apache-2.0 */
#include "messages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flat.h"

/* Numbers of Arrow's unions; fields of its tables by their order. */
enum { TYPE_INT = 2, TYPE_UTF8 = 5 };
enum { MESSAGE_HEADER_TYPE = 1, MESSAGE_HEADER, MESSAGE_BODY_LENGTH };
enum { SCHEMA_FIELDS = 1 };
enum { FIELD_NAME = 0, FIELD_TYPE_TYPE = 2, FIELD_TYPE, FIELD_METADATA = 6 };
enum { BATCH_LENGTH = 0, BATCH_NODES, BATCH_BUFFERS, BATCH_COMPRESSION };

#define HEAD_MOST (16u << 20)
#define CUT_OFF	  "the table ends before its end mark"
#define BAD	  "the table is not as this version of the package knows it"
#define NO_ROOM	  "out of memory"

static bool read_all(int fd, void *into, size_t len)
{
	uint8_t *at = into;

	while (len) {
		ssize_t n = read(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		len -= (size_t)n;
	}
	return true;
}

/* The message before its body. */
static const char *read_head(struct messages *m, struct flat *f, enum message *kind, size_t *header,
			     uint64_t *body)
{
	uint32_t head[2];
	size_t root;

	if (!read_all(m->fd, head, sizeof(head)))
		return CUT_OFF;
	if (head[0] != UINT32_MAX || head[1] > HEAD_MOST)
		return BAD;
	if (!head[1]) {
		*kind = MESSAGE_END;
		return NULL;
	}
	if (head[1] > m->room) {
		free(m->head);
		m->head = malloc(m->room = head[1]);
	}
	if (!m->head)
		return NO_ROOM;
	if (!read_all(m->fd, m->head, head[1]))
		return CUT_OFF;
	*f = (struct flat){ m->head, head[1] };
	root = flat_root(f);
	*kind = (enum message)flat_number(f, flat_field(f, root, MESSAGE_HEADER_TYPE), 1);
	*header = flat_follow(f, flat_field(f, root, MESSAGE_HEADER));
	*body = flat_number(f, flat_field(f, root, MESSAGE_BODY_LENGTH), 8);
	return *header ? NULL : BAD;
}

static char *copy_text(const struct flat *f, size_t table, unsigned field)
{
	size_t len, at = flat_vector(f, table, field, 1, &len);

	return at ? strndup((const char *)f->p + at, len) : NULL;
}

/* Key and value of each pair, each behind its length. */
static char *copy_metadata(const struct flat *f, size_t field)
{
	size_t count, first = flat_vector(f, field, FIELD_METADATA, 4, &count), used = 4, len, at;
	int32_t n = (int32_t)count;
	char *copy = first ? malloc(4 + f->len + 8 * count) : NULL;

	if (!copy)
		return NULL;
	memcpy(copy, &n, sizeof(n));
	for (size_t i = 0; i < 2 * count; i++) {
		at = flat_vector(f, flat_follow(f, first + 4 * (i / 2)), i % 2, 1, &len);
		if (len > f->len || used + 4 + len > 4 + f->len + 8 * count)
			len = 0;
		n = (int32_t)len;
		memcpy(copy + used, &n, sizeof(n));
		if (len)
			memcpy(copy + used + 4, f->p + at, len);
		used += 4 + len;
	}
	return copy;
}

static bool read_format(const struct flat *f, size_t field, struct column *c)
{
	static const struct {
		uint8_t bits, is_signed;
		const char *format;
	} numbers[] = { { 64, 0, "L" }, { 32, 0, "I" }, { 16, 0, "S" }, { 8, 0, "C" },
			{ 64, 1, "l" }, { 32, 1, "i" }, { 16, 1, "s" }, { 8, 1, "c" } };
	uint64_t type = flat_number(f, flat_field(f, field, FIELD_TYPE_TYPE), 1);
	size_t table = flat_follow(f, flat_field(f, field, FIELD_TYPE));
	uint64_t bits = flat_number(f, flat_field(f, table, 0), 4);
	uint64_t is_signed = flat_number(f, flat_field(f, table, 1), 1);

	if (type == TYPE_UTF8)
		strcpy(c->format, "u");
	for (size_t i = 0; type == TYPE_INT && i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (numbers[i].bits == bits && numbers[i].is_signed == is_signed) {
			strcpy(c->format, numbers[i].format);
			c->bits = (uint8_t)bits;
		}
	return c->format[0];
}

const char *messages_schema(struct messages *m, struct columns *out)
{
	char magic[8];
	struct flat f = { 0 };
	enum message kind = MESSAGE_END;
	size_t header = 0, first, count;
	uint64_t body = 0;
	const char *bad;

	if (!read_all(m->fd, magic, sizeof(magic)))
		return CUT_OFF;
	bad = memcmp(magic, "ARROW1\0\0", 8) ? BAD : read_head(m, &f, &kind, &header, &body);
	if (bad || kind != MESSAGE_SCHEMA || body)
		return bad ? bad : BAD;
	first = flat_vector(&f, header, SCHEMA_FIELDS, 4, &count);
	out->items = calloc(count + 1, sizeof(*out->items));
	if (!out->items)
		return NO_ROOM;
	for (out->count = 0; out->count < count; out->count++) {
		struct column *c = &out->items[out->count];
		size_t field = flat_follow(&f, first + 4 * out->count);

		if (!read_format(&f, field, c))
			return BAD;
		c->name = copy_text(&f, field, FIELD_NAME);
		c->metadata = copy_metadata(&f, field);
		if (!c->name) {
			free(c->metadata);
			return BAD;
		}
	}
	return NULL;
}

/* What the message says of its columns and buffers. */
static bool read_lists(const struct flat *f, size_t header, const struct columns *c,
		       struct batch *b)
{
	size_t nodes, buffers, node_count, buffer_count, k = 0;

	nodes = flat_vector(f, header, BATCH_NODES, 16, &node_count);
	buffers = flat_vector(f, header, BATCH_BUFFERS, 16, &buffer_count);
	b->rows = (int64_t)flat_number(f, flat_field(f, header, BATCH_LENGTH), 8);
	if (node_count != c->count || flat_field(f, header, BATCH_COMPRESSION))
		return false;
	for (size_t i = 0; i < c->count; i++) {
		b->nulls[i] = (int64_t)flat_number(f, nodes + 16 * i + 8, 8);
		for (unsigned j = 0; j < 3; j++) {
			b->buffers[3 * i + j] = (struct buffer){ 0 };
			if (j == 1 && c->items[i].bits)
				continue;
			if (k == buffer_count)
				return false;
			b->buffers[3 * i + j].offset = flat_number(f, buffers + 16 * k, 8);
			b->buffers[3 * i + j].len = flat_number(f, buffers + 16 * k + 8, 8);
			k++;
		}
	}
	return k == buffer_count;
}

const char *messages_batch(struct messages *m, const struct columns *c, struct batch *b, bool *end)
{
	struct flat f = { 0 };
	enum message kind = MESSAGE_END;
	size_t header = 0;
	const char *bad = read_head(m, &f, &kind, &header, &b->body_len);

	*end = !bad && kind == MESSAGE_END;
	if (bad || *end)
		return bad;
	if (kind != MESSAGE_BATCH || !read_lists(&f, header, c, b))
		return BAD;
	b->body =
		b->body_len < SIZE_MAX / 2 ? aligned_alloc(64, (b->body_len / 64 + 1) * 64) : NULL;
	if (!b->body)
		return NO_ROOM;
	bad = !read_all(m->fd, b->body, b->body_len) ? CUT_OFF : table_fits(c, b) ? NULL : BAD;
	if (bad)
		free(b->body);
	return bad;
}
