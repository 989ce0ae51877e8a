/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A child may be moved away and released after its parent, on any thread. */
struct body {
	atomic_size_t users;
	uint8_t *bytes;
};

struct array_data {
	struct body *body;
	const void *buffers[3];
};

void columns_free(struct columns *c)
{
	for (size_t i = 0; i < c->count; i++) {
		free(c->items[i].name);
		free(c->items[i].metadata);
	}
	free(c->items);
	*c = (struct columns){ 0 };
}

static void release_schema(struct ArrowSchema *s)
{
	for (int64_t i = 0; i < s->n_children; i++) {
		if (s->children[i] && s->children[i]->release)
			s->children[i]->release(s->children[i]);
		free(s->children[i]);
	}
	free(s->children);
	free(s->private_data);
	s->release = NULL;
}

size_t table_metadata_len(const char *m)
{
	int32_t pairs, len;
	size_t at = sizeof(pairs);

	if (!m)
		return 0;
	memcpy(&pairs, m, sizeof(pairs));
	for (int32_t i = 0; i < 2 * pairs; i++) {
		memcpy(&len, m + at, sizeof(len));
		at += sizeof(len) + (size_t)len;
	}
	return at;
}

/* Its strings in one piece: the schema may outlive the columns. */
static bool column_schema(const struct column *c, struct ArrowSchema *s)
{
	size_t name = strlen(c->name) + 1, meta = table_metadata_len(c->metadata);
	char *copy = malloc(meta + name + sizeof(c->format));

	if (!copy)
		return false;
	if (meta)
		memcpy(copy, c->metadata, meta);
	memcpy(copy + meta, c->name, name);
	memcpy(copy + meta + name, c->format, sizeof(c->format));
	*s = (struct ArrowSchema){ .format = copy + meta + name,
				   .name = copy + meta,
				   .metadata = meta ? copy : NULL,
				   .flags = ARROW_FLAG_NULLABLE,
				   .release = release_schema,
				   .private_data = copy };
	return true;
}

int table_schema(const struct columns *c, struct ArrowSchema *out)
{
	*out = (struct ArrowSchema){ .format = "+s", .name = "", .release = release_schema };
	out->children = calloc(c->count + 1, sizeof(*out->children));
	for (size_t i = 0; out->children && i < c->count; i++) {
		out->children[i] = calloc(1, sizeof(**out->children));
		out->n_children++;
		if (out->children[i] && column_schema(&c->items[i], out->children[i]))
			continue;
		release_schema(out);
		return ENOMEM;
	}
	return out->children ? 0 : ENOMEM;
}

static void drop(struct body *b)
{
	if (atomic_fetch_sub(&b->users, 1) > 1)
		return;
	free(b->bytes);
	free(b);
}

static void release_array(struct ArrowArray *a)
{
	struct array_data *d = a->private_data;

	for (int64_t i = 0; i < a->n_children; i++) {
		if (a->children[i] && a->children[i]->release)
			a->children[i]->release(a->children[i]);
		free(a->children[i]);
	}
	free(a->children);
	drop(d->body);
	free(d);
	a->release = NULL;
}

static struct array_data *new_data(struct ArrowArray *a, struct body *body)
{
	struct array_data *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	atomic_fetch_add(&body->users, 1);
	d->body = body;
	a->private_data = d;
	a->buffers = d->buffers;
	a->release = release_array;
	return d;
}

static bool column_array(const struct column *c, const struct batch *b, size_t i, struct body *body,
			 struct ArrowArray *a)
{
	const struct buffer *from = &b->buffers[3 * i];
	struct array_data *d;
	int n = 0;

	*a = (struct ArrowArray){ .length = b->rows, .null_count = b->nulls[i] };
	d = new_data(a, body);
	if (!d)
		return false;
	d->buffers[n++] = from[0].len ? b->body + from[0].offset : NULL;
	if (!c->bits)
		d->buffers[n++] = b->body + from[1].offset;
	d->buffers[n++] = b->body + from[2].offset;
	a->n_buffers = n;
	return true;
}

int table_array(const struct columns *c, const struct batch *b, struct ArrowArray *out)
{
	struct body *body = calloc(1, sizeof(*body));
	bool ok;

	*out = (struct ArrowArray){ .length = b->rows, .n_buffers = 1 };
	if (!body) {
		free(b->body);
		return ENOMEM;
	}
	atomic_store(&body->users, 1);
	body->bytes = b->body;
	ok = new_data(out, body) && (out->children = calloc(c->count + 1, sizeof(*out->children)));
	for (size_t i = 0; ok && i < c->count; i++) {
		out->children[i] = calloc(1, sizeof(**out->children));
		out->n_children++;
		ok = out->children[i] && column_array(&c->items[i], b, i, body, out->children[i]);
	}
	if (!ok && out->release)
		release_array(out);
	drop(body);
	return ok ? 0 : ENOMEM;
}

static bool within(const struct batch *b, const struct buffer *x)
{
	return x->len <= b->body_len && x->offset <= b->body_len - x->len && x->offset % 8 == 0;
}

/* Offsets begin at 0 or above, grow, and end within the characters. */
static bool texts_fit(const struct batch *b, const struct buffer *offsets, uint64_t characters)
{
	const int32_t *at = (const int32_t *)(const void *)(b->body + offsets->offset);

	if (offsets->len / sizeof(*at) < (uint64_t)b->rows + 1 || at[0] < 0)
		return false;
	for (int64_t i = 0; i < b->rows; i++)
		if (at[i] > at[i + 1])
			return false;
	return (uint64_t)at[b->rows] <= characters;
}

bool table_fits(const struct columns *c, const struct batch *b)
{
	uint64_t rows = (uint64_t)b->rows;

	if (b->rows < 0 || rows > INT32_MAX)
		return false;
	for (size_t i = 0; i < c->count; i++) {
		const struct buffer *from = &b->buffers[3 * i];

		if (!within(b, &from[0]) || !within(b, &from[1]) || !within(b, &from[2]))
			return false;
		if (from[0].len ? from[0].len < (rows + 7) / 8 : b->nulls[i] != 0)
			return false;
		if (c->items[i].bits ? from[2].len < (rows * c->items[i].bits + 7) / 8
				     : !texts_fit(b, &from[1], from[2].len))
			return false;
	}
	return true;
}
