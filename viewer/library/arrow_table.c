/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer may move children away and release each of them after its parent, on any thread. */
#include "arrow_table.h"

#include <stdlib.h>
#include <string.h>

#include "../base/need.h"

/* ---- the schema ---- */

static void release_schema(struct ArrowSchema *s)
{
	for (int64_t i = 0; i < s->n_children; i++) {
		if (s->children[i]->release)
			s->children[i]->release(s->children[i]);
		free(s->children[i]);
	}
	free(s->children);
	free(s->private_data);
	s->release = NULL;
}

static char *add_bytes(char *at, const void *bytes, size_t len)
{
	memcpy(at, bytes, len);
	return at + len;
}

/* A length and the bytes. */
static char *add_text(char *at, const char *text)
{
	int32_t len = (int32_t)strlen(text);

	return add_bytes(add_bytes(at, &len, sizeof(len)), text, (size_t)len);
}

/* Its strings in one piece: the schema may outlive the columns. */
static void column_schema(const struct table_column *c, struct ArrowSchema *s)
{
	static const char unit[] = "unit", meaning[] = "meaning";
	static const int32_t pairs = 2;
	size_t name = strlen(c->name) + 1, format = strlen(c->format) + 1;
	size_t meta = c->unit ? 5 * sizeof(int32_t) + sizeof(unit) + sizeof(meaning) - 2 +
					strlen(c->unit) + strlen(c->meaning)
			      : 0;
	char *copy = need_new(name + format + meta), *at = copy + name + format;

	memcpy(copy, c->name, name);
	memcpy(copy + name, c->format, format);
	*s = (struct ArrowSchema){ .name = copy,
				   .format = copy + name,
				   .metadata = meta ? at : NULL,
				   .flags = ARROW_FLAG_NULLABLE,
				   .release = release_schema,
				   .private_data = copy };
	if (!meta)
		return;
	at = add_bytes(at, &pairs, sizeof(pairs));
	at = add_text(add_text(at, unit), c->unit);
	add_text(add_text(at, meaning), c->meaning);
}

void table_schema(const struct table_column *columns, size_t count, struct ArrowSchema *out)
{
	*out = (struct ArrowSchema){ .format = "+s", .name = "", .release = release_schema };
	out->children = need_new(count * sizeof(*out->children));
	for (; (size_t)out->n_children < count; out->n_children++) {
		struct ArrowSchema *child = need_new(sizeof(*child));

		column_schema(&columns[out->n_children], child);
		out->children[out->n_children] = child;
	}
}

/* ---- batches ---- */

struct array_data {
	const void *buffers[3]; /* as Arrow lists them */
	void *mine[3];
};

static void release_array(struct ArrowArray *a)
{
	struct array_data *d = a->private_data;

	for (int64_t i = 0; i < a->n_children; i++) {
		if (a->children[i]->release)
			a->children[i]->release(a->children[i]);
		free(a->children[i]);
	}
	free(a->children);
	for (int i = 0; i < 3; i++)
		free(d->mine[i]);
	free(d);
	a->release = NULL;
}

static struct array_data *new_array(struct ArrowArray *a, int64_t rows)
{
	struct array_data *d = need_new(sizeof(*d));

	*a = (struct ArrowArray){
		.length = rows, .buffers = d->buffers, .release = release_array, .private_data = d
	};
	return d;
}

static void column_array(const struct table_column *c, const struct table_cells *cells,
			 int64_t rows, struct ArrowArray *a)
{
	struct array_data *d = new_array(a, rows);

	memcpy(d->mine, cells->buffers, sizeof(d->mine));
	a->null_count = cells->nulls;
	d->buffers[a->n_buffers++] = cells->nulls ? cells->buffers[0] : NULL;
	if (*c->format == 'u')
		d->buffers[a->n_buffers++] = cells->buffers[1];
	d->buffers[a->n_buffers++] = cells->buffers[2];
}

void table_array(const struct table_column *columns, const struct table_cells *cells, size_t count,
		 int64_t rows, struct ArrowArray *out)
{
	new_array(out, rows);
	out->n_buffers = 1;
	out->children = need_new(count * sizeof(*out->children));
	for (; (size_t)out->n_children < count; out->n_children++) {
		struct ArrowArray *child = need_new(sizeof(*child));

		column_array(&columns[out->n_children], &cells[out->n_children], rows, child);
		out->children[out->n_children] = child;
	}
}
