/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpumemtrace as a library: libgpumemtrace_core.so. It reads recordings (and memory snapshots of
 * PyTorch) and answers questions about them with the documents that `gpumemtrace COMMAND --json`
 * prints (docs/json.md), and with tables.
 *
 *	struct gpumemtrace *r;
 *	struct gpumemtrace_answer a;
 *
 *	if (gpumemtrace_open("run.gmt", &r, &a))
 *		return fail(a.sentence);
 *	gpumemtrace_ask(&r, 1, "report", NULL, &a);   a.json, a.length
 *	gpumemtrace_answer_free(&a);
 *	gpumemtrace_close(r);
 *
 * The library reads the files that its caller names, and libraries of this machine for the names
 * of native functions. It prints nothing, never ends its process, starts none, handles no signal,
 *and reads neither clock nor environment. Its threads decode a file while gpumemtrace_open runs,
 *and take no signal. Any thread may call it; questions about one recording take turns.
 *
 * Units: sizes are bytes of device memory, times are nanoseconds of the recorded program's
 * CLOCK_MONOTONIC.
 */
#ifndef GPUMEMTRACE_H
#define GPUMEMTRACE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Increases with each incompatible change. Functions and members may be added without an increase.
 */
#define GPUMEMTRACE_INTERFACE 1

/* The exit codes of the commands. */
enum gpumemtrace_code {
	GPUMEMTRACE_OK = 0,
	GPUMEMTRACE_CHECK = 1,	    /* a check failed, or memory never ran out */
	GPUMEMTRACE_USAGE = 2,	    /* wrong arguments */
	GPUMEMTRACE_UNREADABLE = 3, /* a file cannot be read or written, or no memory is left */
};

/* An open recording: its tables stay in memory. */
struct gpumemtrace;

/* Each text ends with a zero byte and may be NULL. gpumemtrace_answer_free frees them. */
struct gpumemtrace_answer {
	char *json;	/* a document, or several, each on a line of its own; NULL after an error */
	size_t length;	/* of json */
	char *sentence; /* the error; NULL: there was none */
	char *notes;	/* sentences that qualify the answer, a line each; NULL: none */
};

void gpumemtrace_answer_free(struct gpumemtrace_answer *a);

int gpumemtrace_interface(void);       /* GPUMEMTRACE_INTERFACE of the library */
const char *gpumemtrace_version(void); /* "0.5.0" */

/*
 * Opens a recording and reads all its events. Every function below with an answer fills it in, also
 * after an error, and returns an enum gpumemtrace_code. After an error *out is NULL.
 */
int gpumemtrace_open(const char *path, struct gpumemtrace **out, struct gpumemtrace_answer *a);
/* The same for a recording in memory, which is copied. `name` replaces its path in answers. */
int gpumemtrace_open_bytes(const void *bytes, size_t length, const char *name,
			   struct gpumemtrace **out, struct gpumemtrace_answer *a);
/* Streams of its tables may outlive it. r may be NULL. */
void gpumemtrace_close(struct gpumemtrace *r);
/* Not 0: it has no end (its program was killed or still runs, or the file was cut), or is damaged.
 */
int gpumemtrace_is_part(const struct gpumemtrace *r);

/*
 * The document of a command about these recordings: `question` is its name (account, advise, check,
 * diff, dump, flame, info, leaks, live, modules, oom, peak, replay, report, stack, steps, timeline,
 * verify, why), `arguments` its options and its operands after the recordings, ending with a NULL
 * (NULL: none): { "--at", "end", NULL }. diff takes two recordings, check and oom any number, each
 * other question one.
 *
 * After an "out of memory" error every further question about these recordings fails: close them.
 */
int gpumemtrace_ask(struct gpumemtrace *const *recordings, size_t count, const char *question,
		    const char *const *arguments, struct gpumemtrace_answer *a);

/* ---- tables ---- */

struct ArrowArrayStream; /* https://arrow.apache.org/docs/format/CStreamInterface.html */

/*
 * A table as a stream of record batches, made while it is read: `allocations` has a row for each
 * block, live or freed, `events` one for each event. `columns`: names in the wanted order,
 * separated by commas; NULL: all. The metadata of a column are its unit and meaning. The stream may
 * be read on any thread. Its release frees all its memory.
 */
int gpumemtrace_table(struct gpumemtrace *r, const char *table, const char *columns,
		      struct ArrowArrayStream *out, struct gpumemtrace_answer *a);

/* A column of the caller's; its buffers are copied. */
struct gpumemtrace_column {
	const char *name, *format; /* as in Arrow's C data interface: L, l, g, b or u */
	int64_t nulls;
	const void *buffers[3]; /* validity bits or NULL; text offsets or NULL; values */
	uint64_t lengths[3];	/* of buffers, in bytes */
};

/* The same columns as a stream of one batch, for callers whose language cannot make one. */
int gpumemtrace_columns(const struct gpumemtrace_column *columns, size_t count, int64_t rows,
			struct ArrowArrayStream *out, struct gpumemtrace_answer *a);

/* ---- Python's capsules ---- */

/* The names of the capsules, and their destructors, which free a struct (allocated by calloc) that
 * nobody took. Call gpumemtrace_capsule_getter with PyCapsule_GetPointer first. */
extern const char gpumemtrace_stream_name[], gpumemtrace_schema_name[];
void gpumemtrace_capsule_getter(void *(*getter)(void *capsule, const char *name));
void gpumemtrace_stream_end(void *capsule);
void gpumemtrace_schema_end(void *capsule);
void gpumemtrace_stream_free(struct ArrowArrayStream *stream); /* releases it, too */

#ifdef __cplusplus
}
#endif

#endif
