/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open recordings and questions about them. A question holds the locks of its recordings, because a
 * recording's tables can be lent to one question at a time.
 */
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../format/version.h"
#include "../base/machine.h"
#include "../base/sorted.h"
#include "arrow_abi.h"
#include "gpumemtrace.h"
#include "library_parts.h"
#include "command.h"

/*
 * Streams and schemas in Python's capsules (the Arrow PyCapsule interface), without a header of an
 * interpreter, so that one library serves all versions. The interpreter calls a capsule's
 * destructor with its lock held. The destructor frees the struct if nobody took it.
 */

#define OFFERED __attribute__((visibility("default")))

OFFERED const char gpumemtrace_stream_name[] = "arrow_array_stream";
OFFERED const char gpumemtrace_schema_name[] = "arrow_schema";

static void *(*pointer_of)(void *capsule, const char *name);

OFFERED void gpumemtrace_capsule_getter(void *(*getter)(void *capsule, const char *name))
{
	pointer_of = getter;
}

OFFERED void gpumemtrace_stream_free(struct ArrowArrayStream *stream)
{
	if (stream && stream->release)
		stream->release(stream);
	free(stream);
}

OFFERED void gpumemtrace_stream_end(void *capsule)
{
	gpumemtrace_stream_free(pointer_of(capsule, gpumemtrace_stream_name));
}

OFFERED void gpumemtrace_schema_end(void *capsule)
{
	struct ArrowSchema *s = pointer_of(capsule, gpumemtrace_schema_name);

	if (s && s->release)
		s->release(s);
	free(s);
}

OFFERED int gpumemtrace_interface(void)
{
	return GPUMEMTRACE_INTERFACE;
}

OFFERED const char *gpumemtrace_version(void)
{
	return GMT_TOOL_VERSION;
}

OFFERED void gpumemtrace_answer_free(struct gpumemtrace_answer *a)
{
	free(a->json);
	free(a->sentence);
	free(a->notes);
	*a = (struct gpumemtrace_answer){ 0 };
}

/* ---- open recordings ---- */

/* After out of memory the tables are in an unknown state, so they are not freed. */
static void free_recording(struct gpumemtrace *r)
{
	if (!r->lost) {
		if (r->recording.kept)
			kept_free(&r->kept);
		if (r->recording.reader)
			recording_close(&r->recording);
	}
	if (r->bytes >= 0)
		close(r->bytes);
	pthread_mutex_destroy(&r->lock);
	free(r->name);
	free(r);
}

OFFERED void gpumemtrace_close(struct gpumemtrace *r)
{
	if (r && !__atomic_sub_fetch(&r->users, 1, __ATOMIC_ACQ_REL))
		free_recording(r);
}

OFFERED int gpumemtrace_is_part(const struct gpumemtrace *r)
{
	return r->recording.info->truncated;
}

/* Takes over `bytes`. A name that begins with a dash would be parsed as an option. */
static struct gpumemtrace *new_recording(const char *name, int bytes)
{
	struct gpumemtrace *r = calloc(1, sizeof(*r));

	if (r && asprintf(&r->name, "%s%s", *name == '-' ? "./" : "", name) < 0) {
		free(r);
		r = NULL;
	}
	if (r) {
		r->users = 1;
		r->bytes = bytes;
		pthread_mutex_init(&r->lock, NULL);
	} else if (bytes >= 0) {
		close(bytes);
	}
	return r;
}

struct opening {
	struct gpumemtrace *r;
	const char *path;
};

static int open_recording(void *ctx)
{
	const struct opening *o = ctx;
	struct gpumemtrace *r = o->r;
	int rc;

	if (!r)
		machine_out_of_memory();
	rc = recording_read(&r->recording, o->path, r->name);
	if (rc) {
		r->recording.reader = NULL;
		return rc;
	}
	return kept_read(&r->kept, &r->recording);
}

static int read_recording(struct gpumemtrace *r, const char *path, struct gpumemtrace **out,
			  struct gpumemtrace_answer *a)
{
	bool lost;
	int code = library_ask(a, &lost, open_recording, &(struct opening){ r, path });

	if (r)
		r->lost = lost;
	if (code)
		gpumemtrace_close(r);
	*out = code ? NULL : r;
	return code;
}

OFFERED int gpumemtrace_open(const char *path, struct gpumemtrace **out,
			     struct gpumemtrace_answer *a)
{
	struct gpumemtrace *r = new_recording(path, -1);

	return read_recording(r, r ? r->name : path, out, a);
}

static int keep_bytes(const void *bytes, size_t length)
{
	int fd = memfd_create("recording", MFD_CLOEXEC);
	size_t done = 0;
	ssize_t n = 1;

	while (fd >= 0 && done < length && (n > 0 || errno == EINTR)) {
		n = write(fd, (const char *)bytes + done, length - done);
		done += n > 0 ? (size_t)n : 0;
	}
	if (fd >= 0 && done < length) {
		close(fd);
		fd = -1;
	}
	return fd;
}

OFFERED int gpumemtrace_open_bytes(const void *bytes, size_t length, const char *name,
				   struct gpumemtrace **out, struct gpumemtrace_answer *a)
{
	int fd = keep_bytes(bytes, length);
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return read_recording(fd < 0 ? NULL : new_recording(name, fd), path, out, a);
}

/* ---- questions ---- */

struct question {
	struct gpumemtrace *const *recordings;
	size_t count;
	const char *name, *const *arguments;
	struct gpumemtrace_answer *answer;
	/* held: the recordings to lock, sorted, each once; open: for recording_lend */
	struct gpumemtrace **held;
	struct recording **open;
	size_t held_count;
	const struct command *command;
	char **words;
};

static bool takes(const struct command *c, size_t count)
{
	if (c->ranks == COMMAND_ALL)
		return count >= 1;
	return count == (c->ranks == COMMAND_PAIRS ? 2 : 1);
}

/* Returns the words --json, the recordings' names and the arguments, for options_parse. */
static char **command_line(const struct question *q)
{
	size_t n = need_count((char *const *)q->arguments), at = 0;
	char **words = need_new((q->count + n + 2) * sizeof(*words));

	words[at++] = (char *)"--json";
	for (size_t i = 0; i < q->count; i++)
		words[at++] = q->recordings[i]->name;
	for (size_t i = 0; i < n; i++)
		words[at++] = (char *)q->arguments[i];
	return words;
}

static int perform(const struct question *q, void *options, struct options_common *common)
{
	const struct command *c = q->command;
	struct gpumemtrace_answer *a = q->answer;
	FILE *f;
	struct emit *out;
	int rc = options_parse(c, q->words, options, common);

	if (!rc && (common->help || common->rank || need_count(common->files) > 1))
		rc = say_usage("--help, --rank and more files are for the command line");
	if (!rc && c->check)
		rc = c->check(options);
	if (rc)
		return rc;
	f = need_stream(&a->json, &a->length);
	out = emit_open(f, true);
	rc = command_perform(c, options, out);
	if (emit_close(out))
		machine_out_of_memory();
	fclose(f);
	return rc;
}

static int answer(struct question *q)
{
	struct options_common common = { 0 };
	void *options;
	int rc;

	q->command = question_find(q->name);
	if (!q->command)
		return say_usage("there is no question \"%s\"", q->name);
	if (!takes(q->command, q->count))
		return say_usage("%s is not asked of %zu recordings", q->name, q->count);
	q->words = command_line(q);
	options = options_new(q->command);
	rc = perform(q, options, &common);
	options_free(q->command, options, &common);
	free(q->words);
	return rc;
}

/* Locks are taken in order of address, so that two questions cannot deadlock. */
COMPARE(by_address, __typeof__(char *), ORDER(*x, *y))

static void hold_all(struct question *q)
{
	size_t kept = 0;

	q->held = need_new((q->count + 1) * sizeof(struct gpumemtrace *));
	q->open = need_new((q->count + 1) * sizeof(struct recording *));
	for (size_t i = 0; i < q->count; i++) {
		q->held[i] = q->recordings[i];
		q->open[i] = &q->recordings[i]->recording;
	}
	qsort(q->held, q->count, sizeof(struct gpumemtrace *), by_address);
	for (size_t i = 0; i < q->count; i++)
		if (!i || q->held[i] != q->held[kept - 1])
			q->held[kept++] = q->held[i];
	for (; q->held_count < kept; q->held_count++)
		pthread_mutex_lock(&q->held[q->held_count]->lock);
}

static void let_all_go(struct question *q, bool lost)
{
	recording_lend(NULL, 0);
	for (size_t i = 0; i < q->held_count; i++) {
		q->held[i]->lost |= lost;
		pthread_mutex_unlock(&q->held[i]->lock);
	}
	free(q->held);
	free(q->open);
}

static int hold_and_answer(void *ctx)
{
	struct question *q = ctx;

	hold_all(q);
	recording_lend(q->open, q->count);
	if (ANY_OF(x, q->held, q->held_count, (*x)->lost))
		machine_out_of_memory();
	return answer(q);
}

OFFERED int gpumemtrace_ask(struct gpumemtrace *const *recordings, size_t count,
			    const char *question, const char *const *arguments,
			    struct gpumemtrace_answer *a)
{
	struct question q = { .recordings = recordings,
			      .count = count,
			      .name = question,
			      .arguments = arguments,
			      .answer = a };
	bool lost;
	int code = library_ask(a, &lost, hold_and_answer, &q);

	let_all_go(&q, lost);
	if (code > EXIT_CHECK || !a->length) {
		free(a->json);
		a->json = NULL;
		a->length = 0;
	}
	return code;
}
