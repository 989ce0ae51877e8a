/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables as Arrow's streams. A stream holds its recording and its position in it. Each batch is a
 * question of its own, so other questions can come between two batches. Consumers call a stream
 * from any thread, one at a time.
 */
#include "../export/export_events.h"
#include "arrow_abi.h"
#include "library_parts.h"

/* Each child owns its memory, because a consumer may move children away and release them after
 * their parent, on any thread. */

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

static char *add_text(char *at, const char *text)
{
	int32_t len = (int32_t)strlen(text);

	return add_bytes(add_bytes(at, &len, sizeof(len)), text, (size_t)len);
}

/* Copies all strings into one allocation, because the schema may outlive the columns. */
static void column_schema(const struct arrow_column *c, struct ArrowSchema *s)
{
	static const char unit[] = "unit", meaning[] = "meaning";
	static const int32_t pairs = 2;
	size_t name = strlen(c->name) + 1, format = 2;
	size_t meta = c->unit ? 5 * sizeof(int32_t) + sizeof(unit) + sizeof(meaning) - 2 +
					strlen(c->unit) + strlen(c->meaning)
			      : 0;
	char *copy = need_new(name + format + meta), *at = copy + name + format;

	memcpy(copy, c->name, name);
	copy[name] = (char)c->type;
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

static void table_schema(const struct arrow_column *columns, size_t count, struct ArrowSchema *out)
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

/* Moves the buffers from the cells to the array. */
static void column_array(const struct arrow_column *c, struct arrow_cells *cells, uint64_t rows,
			 struct ArrowArray *a)
{
	struct array_data *d = new_array(a, (int64_t)rows);

	d->mine[0] = cells->valid.p;
	d->mine[1] = cells->offsets.p;
	d->mine[2] = cells->values.p ? cells->values.p : need_new(1);
	cells->valid.p = cells->offsets.p = cells->values.p = NULL;
	a->null_count = (int64_t)(rows - cells->given);
	d->buffers[a->n_buffers++] = a->null_count ? d->mine[0] : NULL;
	if (c->type == ARROW_TEXT)
		d->buffers[a->n_buffers++] = d->mine[1];
	d->buffers[a->n_buffers++] = d->mine[2];
}

static void table_array(const struct arrow_column *columns, struct arrow_cells *cells, size_t count,
			uint64_t rows, struct ArrowArray *out)
{
	new_array(out, (int64_t)rows);
	out->n_buffers = 1;
	out->children = need_new(count * sizeof(*out->children));
	for (; (size_t)out->n_children < count; out->n_children++) {
		struct ArrowArray *child = need_new(sizeof(*child));

		column_array(&columns[out->n_children], &cells[out->n_children], rows, child);
		out->children[out->n_children] = child;
	}
}

#define OFFERED	     __attribute__((visibility("default")))
#define MOST_COLUMNS 32
#define PARTS	     16

_Static_assert(COLUMNS <= MOST_COLUMNS && EVENT_COLUMNS <= MOST_COLUMNS, "of one table");

struct table_stream {
	/* Adds batches to `ready` or sets `ended`. 0, or an exit code after an error message. */
	int (*fill)(struct table_stream *s);
	struct gpumemtrace *recording; /* NULL: the columns are the caller's */
	struct arrow_column *columns;
	unsigned which[MOST_COLUMNS], count;
	struct arrow_batch batch;
	struct ArrowArray *ready; /* batches that nobody has taken yet: from `given` on */
	size_t ready_count, ready_room, given;
	struct gpumemtrace_answer answer; /* of the latest call: its error */
	bool ended, failed;

	/* allocations */
	bool begun;
	struct export export;
	struct export_walk walk;
	/* events */
	size_t part;
	struct export_events events;
};

/* Moves the batch to a new array in `ready`. */
static void flush_batch(struct table_stream *s)
{
	struct arrow_batch *b = &s->batch;

	if (!b->rows)
		return;
	arrow_batch_finish(b);
	table_array(s->columns, b->cells, s->count, b->rows,
		    need_item(s->ready, s->ready_count, s->ready_room));
	arrow_batch_clear(b);
}

/* ---- allocations ---- */

static void begin_allocations(struct table_stream *s)
{
	struct export *x = &s->export;

	x->recording = &s->recording->recording;
	export_walk_first(&s->walk, x);
	s->begun = true;
}

static int fill_allocations(struct table_stream *s)
{
	struct export_cell cells[COLUMNS], chosen[COLUMNS];
	unsigned wanted = 0;
	bool full = false;
	uint32_t life;

	if (!s->begun)
		timeline_open_names(&s->export.timeline, &s->recording->recording);
	kept_lend(&s->recording->kept, &s->export.timeline.model);
	if (!s->begun)
		begin_allocations(s);
	for (unsigned i = 0; i < s->count; i++)
		wanted |= 1u << s->which[i];
	while (!full && export_walk_next(&s->walk, &life)) {
		export_row(&s->export, life, wanted, cells);
		for (unsigned i = 0; i < s->count; i++)
			chosen[i] = cells[s->which[i]];
		full = export_arrow_row(&s->batch, chosen);
	}
	model_free(&s->export.timeline.model);
	flush_batch(s);
	s->ended = !full;
	return 0;
}

/* ---- events ---- */

static void take_event(void *ctx, const struct export_cell *cells)
{
	struct table_stream *s = ctx;

	if (export_arrow_row(&s->batch, cells))
		flush_batch(s);
}

/* Reads several parts at a time, because kept_run might have to decode earlier blocks each time. */
static int fill_events(struct table_stream *s)
{
	struct gpumemtrace *r = s->recording;
	int rc = 0;

	s->events = (struct export_events){
		.defs = &r->recording.defs, .count = s->count, .row = take_event, .ctx = s
	};
	memcpy(s->events.what, s->which, sizeof(s->events.what));
	if (s->part < r->kept.part_count)
		rc = kept_run(&r->kept, &r->recording, s->part, PARTS, export_event_row,
			      &s->events);
	flush_batch(s);
	s->part += PARTS;
	s->ended = s->part >= r->kept.part_count;
	return rc;
}

/* ---- streams ---- */

static const struct table {
	const char *name;
	int (*fill)(struct table_stream *s);
	const struct arrow_column *columns;
	unsigned count;
} tables[] = { { "allocations", fill_allocations, export_columns, COLUMNS },
	       { "events", fill_events, export_event_columns, EVENT_COLUMNS } };

static int choose_table(struct table_stream *s, const char *name, const char *columns)
{
	const struct table *t =
		FIRST_OF(x, tables, sizeof(tables) / sizeof(tables[0]), !strcmp(x->name, name));
	int rc;

	if (!t)
		return say_usage("there is no table \"%s\"", name);
	s->fill = t->fill;
	rc = arrow_choose(t->columns, t->count, columns, s->which, &s->count);
	s->columns = need_new(s->count * sizeof(*s->columns));
	for (unsigned i = 0; !rc && i < s->count; i++)
		s->columns[i] = t->columns[s->which[i]];
	return rc;
}

struct next {
	struct table_stream *stream;
	struct ArrowArray *out;
};

static int next_batch(void *ctx)
{
	const struct next *n = ctx;
	struct table_stream *s = n->stream;
	bool lost = s->recording && s->recording->lost;
	int rc = lost ? say_unreadable("out of memory") : 0;

	while (!rc && !s->ended && s->given == s->ready_count) {
		s->given = s->ready_count = 0;
		rc = s->fill(s);
	}
	if (!rc && s->given < s->ready_count)
		*n->out = s->ready[s->given++];
	return rc;
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
	struct table_stream *s = stream->private_data;
	struct gpumemtrace *r = s->recording;
	bool lost;

	*out = (struct ArrowArray){ 0 };
	if (s->failed)
		return EIO;
	if (r)
		pthread_mutex_lock(&r->lock);
	gpumemtrace_answer_free(&s->answer);
	s->failed = library_ask(&s->answer, &lost, next_batch, &(struct next){ s, out });
	if (r) {
		r->lost |= lost;
		pthread_mutex_unlock(&r->lock);
	}
	return s->failed ? EIO : 0;
}

struct schema {
	const struct table_stream *stream;
	struct ArrowSchema *out;
};

static int write_schema(void *ctx)
{
	const struct schema *x = ctx;

	table_schema(x->stream->columns, x->stream->count, x->out);
	return 0;
}

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
	struct table_stream *s = stream->private_data;

	gpumemtrace_answer_free(&s->answer);
	return library_ask(&s->answer, NULL, write_schema, &(struct schema){ s, out }) ? ENOMEM : 0;
}

static const char *get_last_error(struct ArrowArrayStream *stream)
{
	return ((struct table_stream *)stream->private_data)->answer.sentence;
}

static void free_columns(struct table_stream *s)
{
	for (size_t i = 0; !s->recording && i < s->count; i++)
		free((char *)s->columns[i].name);
	free(s->columns);
}

static void release(struct ArrowArrayStream *stream)
{
	struct table_stream *s = stream->private_data;

	if (s->begun && !s->recording->lost)
		timeline_close_names(&s->export.timeline);
	for (; s->given < s->ready_count; s->given++)
		s->ready[s->given].release(&s->ready[s->given]);
	free(s->ready);
	arrow_batch_free(&s->batch);
	gpumemtrace_answer_free(&s->answer);
	free_columns(s);
	gpumemtrace_close(s->recording);
	free(s);
	stream->release = NULL;
}

struct table_query {
	struct gpumemtrace *r;
	const char *table, *columns;
	struct ArrowArrayStream *out;
};

static int make_stream(void *ctx)
{
	const struct table_query *q = ctx;
	struct table_stream *s = need_new(sizeof(*s));
	int rc = choose_table(s, q->table, q->columns);

	s->recording = q->r;
	if (rc) {
		free_columns(s);
		free(s);
		return rc;
	}
	arrow_batch_init(&s->batch, s->columns, (unsigned)s->count);
	__atomic_add_fetch(&q->r->users, 1, __ATOMIC_RELAXED);
	*q->out = (struct ArrowArrayStream){ get_schema, get_next, get_last_error, release, s };
	return 0;
}

OFFERED int gpumemtrace_table(struct gpumemtrace *r, const char *table, const char *columns,
			      struct ArrowArrayStream *out, struct gpumemtrace_answer *a)
{
	return library_ask(a, NULL, make_stream, &(struct table_query){ r, table, columns, out });
}

struct columns_query {
	const struct gpumemtrace_column *columns;
	size_t count;
	int64_t rows;
	struct ArrowArrayStream *out;
};

static int copy_columns(void *ctx)
{
	const struct columns_query *q = ctx;
	struct table_stream *s = need_new(sizeof(*s));
	struct arrow_cells *cells = need_new(q->count * sizeof(*cells));

	s->columns = need_new(q->count * sizeof(*s->columns));
	s->ended = true;
	for (; s->count < q->count; s->count++) {
		const struct gpumemtrace_column *c = &q->columns[s->count];
		struct arrow_cells *to = &cells[s->count];

		s->columns[s->count].name = need_text(c->name);
		s->columns[s->count].type = (enum arrow_type)c->format[0];
		to->given = (uint64_t)(q->rows - c->nulls);
		to->valid.p = (void *)need_copy(c->buffers[0], c->lengths[0]);
		to->offsets.p = (void *)need_copy(c->buffers[1], c->lengths[1]);
		to->values.p = (void *)need_copy(c->buffers[2], c->lengths[2]);
	}
	table_array(s->columns, cells, q->count, (uint64_t)q->rows,
		    need_item(s->ready, s->ready_count, s->ready_room));
	free(cells);
	*q->out = (struct ArrowArrayStream){ get_schema, get_next, get_last_error, release, s };
	return GPUMEMTRACE_OK;
}

OFFERED int gpumemtrace_columns(const struct gpumemtrace_column *columns, size_t count,
				int64_t rows, struct ArrowArrayStream *out,
				struct gpumemtrace_answer *a)
{
	return library_ask(a, NULL, copy_columns,
			   &(struct columns_query){ columns, count, rows, out });
}
