/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables for Python's Arrow PyCapsule interface, called through ctypes: no header of an interpreter
 * is needed, so that one library serves all versions. A stream's batches come from the tool as it
 * writes them, or from columns that Python gives. Consumers call it from any thread, one at a time;
 * nothing here needs the interpreter but the capsule's end, which holds its lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool_process.h"
#include "messages.h"

#define OFFERED __attribute__((visibility("default")))

/* A column of a table that Python has at hand: bytes as Arrow lays them out. */
struct gmt_arrow_column {
	const char *name, *format, *metadata;
	int64_t nulls;
	const void *buffers[3]; /* valid, offsets, values; NULL for none */
	uint64_t lens[3];
	uint8_t bits;
};

struct stream {
	struct columns columns;
	struct batch batch; /* its lists; and what Python gave, until it is taken */
	struct child child;
	struct messages messages;
	bool done;
	char error[2048];
};

OFFERED int gmt_arrow_of_tool(const char *path, char *const argv[], char *const envp[],
			      struct ArrowArrayStream *out, int *code, char *text, size_t room);
OFFERED int gmt_arrow_of_columns(const struct gmt_arrow_column *columns, size_t count, int64_t rows,
				 struct ArrowArrayStream *out);
OFFERED int gmt_arrow_get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out);
OFFERED void gmt_arrow_drop(struct ArrowArrayStream *stream);
OFFERED void gmt_arrow_set_getter(void *(*getter)(void *capsule, const char *name));
OFFERED void gmt_arrow_end_stream(void *capsule);
OFFERED void gmt_arrow_end_schema(void *capsule);

/* Names of capsules, which must live as long as any. */
extern OFFERED const char gmt_arrow_stream_name[], gmt_arrow_schema_name[];

const char gmt_arrow_stream_name[] = "arrow_array_stream";
const char gmt_arrow_schema_name[] = "arrow_schema";

static void *(*pointer_of)(void *capsule, const char *name);

static int fail(struct stream *s, int err, const char *text)
{
	if (text != s->error)
		strncpy(s->error, text, sizeof(s->error) - 1);
	s->done = true;
	return err;
}

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
	struct stream *s = stream->private_data;
	int rc = table_schema(&s->columns, out);

	return rc ? fail(s, rc, "out of memory") : 0;
}

/* The tool's own sentence is worth more than ours; it has one if it failed. */
static int tool_failed(struct stream *s, const char *bad)
{
	return fail(s, EIO,
		    child_end(&s->child, s->error, sizeof(s->error)) && s->error[0] ? s->error
										    : bad);
}

/* Whether what follows the table is the rest of an Arrow file, to its last six bytes. */
static bool ends_as_a_file(int fd)
{
	static const char last[] = "ARROW1";
	char rest[4096 + 6];
	size_t kept = 0;
	ssize_t n;

	while ((n = read(fd, rest + kept, sizeof(rest) - kept)) > 0 || (n < 0 && errno == EINTR)) {
		size_t have = kept + (n > 0 ? (size_t)n : 0);

		kept = have < 6 ? have : 6;
		memmove(rest, rest + have - kept, kept);
	}
	return kept == 6 && !memcmp(rest, last, 6);
}

/* A table that the tool could not finish has an end mark too: its exit code says so. */
static int at_end(struct stream *s)
{
	bool whole = ends_as_a_file(s->child.out);

	s->done = true;
	if (child_end(&s->child, s->error, sizeof(s->error)) > 0)
		return s->error[0] ? EIO : fail(s, EIO, "the tool failed");
	if (!whole)
		return fail(s, EIO, "the tool's table has no end, or something came behind it");
	s->error[0] = 0;
	return 0;
}

static int next_of_tool(struct stream *s, struct ArrowArray *out)
{
	bool end;
	const char *bad = messages_batch(&s->messages, &s->columns, &s->batch, &end);
	int rc;

	if (bad)
		return tool_failed(s, bad);
	if (end)
		return at_end(s);
	rc = table_array(&s->columns, &s->batch, out);
	return rc ? fail(s, rc, "out of memory") : 0;
}

static int next_of_columns(struct stream *s, struct ArrowArray *out)
{
	struct batch b = s->batch;
	int rc;

	s->done = true;
	s->batch.body = NULL;
	rc = table_array(&s->columns, &b, out);
	return rc ? fail(s, rc, "out of memory") : 0;
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
	struct stream *s = stream->private_data;

	*out = (struct ArrowArray){ 0 };
	if (s->error[0])
		return EIO;
	if (s->done)
		return 0;
	return s->messages.fd >= 0 ? next_of_tool(s, out) : next_of_columns(s, out);
}

static const char *get_last_error(struct ArrowArrayStream *stream)
{
	struct stream *s = stream->private_data;

	return s->error[0] ? s->error : NULL;
}

static void free_stream(struct stream *s)
{
	if (s->messages.fd >= 0) {
		child_kill(&s->child);
		s->batch.body = NULL; /* each belongs to its array */
	}
	free(s->batch.body);
	free(s->batch.nulls);
	free(s->batch.buffers);
	free(s->messages.head);
	columns_free(&s->columns);
	free(s);
}

static void release(struct ArrowArrayStream *stream)
{
	free_stream(stream->private_data);
	stream->release = NULL;
}

static void offer(struct stream *s, struct ArrowArrayStream *out)
{
	*out = (struct ArrowArrayStream){ get_schema, get_next, get_last_error, release, s };
}

static bool make_lists(struct stream *s)
{
	s->batch.nulls = calloc(s->columns.count + 1, sizeof(*s->batch.nulls));
	s->batch.buffers = calloc(3 * s->columns.count + 1, sizeof(*s->batch.buffers));
	return s->batch.nulls && s->batch.buffers;
}

/* The schema is read at once. 0; or an errno, with the tool's exit code and what it said, or what
 * is wrong with its table. */
int gmt_arrow_of_tool(const char *path, char *const argv[], char *const envp[],
		      struct ArrowArrayStream *out, int *code, char *text, size_t room)
{
	struct stream *s = calloc(1, sizeof(*s));
	const char *bad;
	int rc;

	*code = -1;
	text[0] = 0;
	if (!s)
		return ENOMEM;
	rc = child_start(&s->child, path, argv, envp);
	if (rc) {
		free(s);
		return rc;
	}
	s->messages.fd = s->child.out;
	bad = messages_schema(&s->messages, &s->columns);
	if (!bad && make_lists(s)) {
		offer(s, out);
		return 0;
	}
	*code = child_end(&s->child, text, room);
	if (!text[0])
		strncpy(text, bad ? bad : "out of memory", room - 1);
	free_stream(s);
	return EIO;
}

/* One piece of memory for all buffers, each at a multiple of 64. */
static bool copy_buffers(struct stream *s, const struct gmt_arrow_column *columns)
{
	uint64_t len = 0;

	for (size_t i = 0; i < s->columns.count; i++)
		for (unsigned j = 0; j < 3; j++) {
			s->batch.nulls[i] = columns[i].nulls;
			s->batch.buffers[3 * i + j] = (struct buffer){ len, columns[i].lens[j] };
			len += (columns[i].lens[j] + 63) / 64 * 64;
		}
	s->batch.body_len = len + 64;
	s->batch.body = aligned_alloc(64, s->batch.body_len);
	for (size_t i = 0; s->batch.body && i < 3 * s->columns.count; i++)
		if (columns[i / 3].lens[i % 3])
			memcpy(s->batch.body + s->batch.buffers[i].offset,
			       columns[i / 3].buffers[i % 3], columns[i / 3].lens[i % 3]);
	return s->batch.body;
}

static bool copy_column(struct column *to, const struct gmt_arrow_column *from)
{
	size_t len = table_metadata_len(from->metadata);

	strncpy(to->format, from->format, sizeof(to->format) - 1);
	to->bits = from->bits;
	to->name = strdup(from->name);
	to->metadata = len ? malloc(len) : NULL;
	if (to->metadata)
		memcpy(to->metadata, from->metadata, len);
	return to->name && (to->metadata || !len);
}

/* What Python gives is copied. 0 or an errno. */
int gmt_arrow_of_columns(const struct gmt_arrow_column *columns, size_t count, int64_t rows,
			 struct ArrowArrayStream *out)
{
	struct stream *s = calloc(1, sizeof(*s));
	bool ok;

	if (!s)
		return ENOMEM;
	s->messages.fd = -1;
	s->batch.rows = rows;
	s->columns.items = calloc(count + 1, sizeof(*s->columns.items));
	ok = s->columns.items;
	for (; ok && s->columns.count < count; s->columns.count++)
		ok = copy_column(&s->columns.items[s->columns.count], &columns[s->columns.count]);
	ok = ok && make_lists(s) && copy_buffers(s, columns);
	if (ok && table_fits(&s->columns, &s->batch)) {
		offer(s, out);
		return 0;
	}
	free_stream(s);
	return ok ? EINVAL : ENOMEM;
}

void gmt_arrow_set_getter(void *(*getter)(void *capsule, const char *name))
{
	pointer_of = getter;
}

int gmt_arrow_get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
	return stream->get_schema(stream, out);
}

/* The stream and the memory that it stands in. */
void gmt_arrow_drop(struct ArrowArrayStream *stream)
{
	if (stream && stream->release)
		stream->release(stream);
	free(stream);
}

/* A capsule that nobody took the stream out of ends it. */
void gmt_arrow_end_stream(void *capsule)
{
	gmt_arrow_drop(pointer_of(capsule, gmt_arrow_stream_name));
}

void gmt_arrow_end_schema(void *capsule)
{
	struct ArrowSchema *s = pointer_of(capsule, gmt_arrow_schema_name);

	if (s && s->release)
		s->release(s);
	free(s);
}
