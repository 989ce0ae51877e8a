/* SPDX-License-Identifier: Apache-2.0 */
/* Columns that the caller has, as a stream of one batch. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../base/need.h"
#include "arrow_table.h"
#include "library_machine.h"

#define OFFERED __attribute__((visibility("default")))

struct column_stream {
	struct table_column *columns;
	struct table_cells *cells; /* NULL: they were taken */
	size_t count;
	int64_t rows;
	struct gpumemtrace_answer answer;
};

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
	struct column_stream *s = stream->private_data;
	struct asked asked;

	gpumemtrace_answer_free(&s->answer);
	asked_begin(&asked, &s->answer);
	if (asked_try(&asked))
		table_schema(s->columns, s->count, out);
	return asked_end(&asked, 0) ? ENOMEM : 0;
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
	struct column_stream *s = stream->private_data;
	struct asked asked;

	*out = (struct ArrowArray){ 0 };
	gpumemtrace_answer_free(&s->answer);
	asked_begin(&asked, &s->answer);
	if (s->cells && asked_try(&asked)) {
		table_array(s->columns, s->cells, s->count, s->rows, out);
		free(s->cells);
		s->cells = NULL;
	}
	return asked_end(&asked, 0) ? ENOMEM : 0;
}

static const char *get_last_error(struct ArrowArrayStream *stream)
{
	return ((struct column_stream *)stream->private_data)->answer.sentence;
}

static void release(struct ArrowArrayStream *stream)
{
	struct column_stream *s = stream->private_data;

	for (size_t i = 0; i < s->count; i++) {
		for (int k = 0; s->cells && k < 3; k++)
			free(s->cells[i].buffers[k]);
		free((char *)s->columns[i].name);
		free((char *)s->columns[i].format);
	}
	free(s->columns);
	free(s->cells);
	gpumemtrace_answer_free(&s->answer);
	free(s);
	stream->release = NULL;
}

static void copy_columns(const struct gpumemtrace_column *columns, size_t count, int64_t rows,
			 struct ArrowArrayStream *out)
{
	struct column_stream *s = need_new(sizeof(*s));

	s->columns = need_new(count * sizeof(*s->columns));
	s->cells = need_new(count * sizeof(*s->cells));
	s->rows = rows;
	for (; s->count < count; s->count++) {
		const struct gpumemtrace_column *c = &columns[s->count];
		struct table_cells *to = &s->cells[s->count];

		s->columns[s->count].name = need_copy(c->name, strlen(c->name));
		s->columns[s->count].format = need_copy(c->format, strlen(c->format));
		to->nulls = c->nulls;
		for (int k = 0; k < 3; k++)
			to->buffers[k] = need_copy(c->buffers[k], c->lengths[k]);
	}
	*out = (struct ArrowArrayStream){ get_schema, get_next, get_last_error, release, s };
}

OFFERED int gpumemtrace_columns(const struct gpumemtrace_column *columns, size_t count,
				int64_t rows, struct ArrowArrayStream *out,
				struct gpumemtrace_answer *a)
{
	struct asked asked;

	asked_begin(&asked, a);
	if (asked_try(&asked))
		copy_columns(columns, count, rows, out);
	return asked_end(&asked, GPUMEMTRACE_OK);
}
