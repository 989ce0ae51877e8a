/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace event format (JSON) of Perfetto and chrome://tracing: a counter per class and device,
 * reserved memory, ranges on their threads, instants for failed allocations. Times are microseconds
 * since the first event, with nanosecond precision.
 */
#include "../../format/record.h"
#include "../base/emit_json.h"
#include "export.h"

struct range {
	uint64_t number, begin_ns;
	uint32_t name, thread;
};

struct trace {
	struct export *x;
	FILE *f;
	bool any;
	int64_t bytes[MODEL_DEVICES][CATEGORIES];
	bool changed[MODEL_DEVICES][CATEGORIES];
	uint64_t reserved[MODEL_DEVICES];
	struct range *open;
	size_t open_count, open_room;
};

/* The kernel's thread id. The main thread's is the process id, by which viewers recognize it.
 * Events of the process (thread 0) appear there too. A converted snapshot has no such ids. */
static uint32_t kernel_thread(const struct trace *t, uint32_t thread)
{
	const struct defs_thread *d = defs_thread(&t->x->recording->defs, thread);

	if (!thread)
		return t->x->recording->info->pid;
	return d && d->tid ? d->tid : thread;
}

static void trace_begin_event(struct trace *t, const char *phase, const char *name, size_t len,
			      uint64_t ns, uint32_t thread)
{
	uint64_t at = ns - t->x->timeline.model.first_ns;

	fprintf(t->f, "%s{\"ph\":\"%s\",\"name\":", t->any ? ",\n" : "\n", phase);
	emit_json_string(t->f, name, len);
	fprintf(t->f, ",\"pid\":%u,\"tid\":%u,\"ts\":%" PRIu64 ".%03" PRIu64,
		t->x->recording->info->pid, kernel_thread(t, thread), at / 1000, at % 1000);
	t->any = true;
}

static void counter(struct trace *t, int device, const char *what, uint64_t bytes, uint64_t ns)
{
	char name[64];
	int n = snprintf(name, sizeof(name), "GPU %d %s", device, what);

	trace_begin_event(t, "C", name, (size_t)n, ns, 0);
	fprintf(t->f, ",\"args\":{\"bytes\":%" PRIu64 "}}", bytes);
}

static void on_change(void *ctx, const struct series_change *c)
{
	struct trace *t = ctx;

	if (!c->bytes)
		return;
	t->bytes[c->device][c->category] += c->bytes;
	t->changed[c->device][c->category] = true;
}

static void write_counters(struct trace *t, const struct series_event *e)
{
	for (int d = 0; d < t->x->timeline.model.device_end; d++)
		for (unsigned c = 0; c < CATEGORIES; c++) {
			if (t->changed[d][c])
				counter(t, d, categories[c].words, (uint64_t)t->bytes[d][c],
					e->time_ns);
			t->changed[d][c] = false;
		}
}

static void write_reserved(struct trace *t, const struct series_event *e)
{
	for (int d = 0; d < t->x->timeline.model.device_end; d++) {
		uint64_t now = e->devices[d].reserved;

		if (now == t->reserved[d])
			continue;
		t->reserved[d] = now;
		counter(t, d, "reserved", now, e->time_ns);
	}
}

/* Slices of a thread must nest. A range that ends out of order is written without a thread. */
static void end_range(struct trace *t, size_t i, uint64_t ns)
{
	const struct range r = t->open[i];
	struct defs_text name = defs_string(&t->x->recording->defs, r.name);
	uint64_t ns_long = ns - r.begin_ns;
	bool inner = true;

	for (size_t k = i + 1; k < t->open_count; k++)
		if (t->open[k].thread == r.thread)
			inner = false;
	memmove(&t->open[i], &t->open[i + 1], (t->open_count - i - 1) * sizeof(r));
	t->open_count--;
	if (inner) {
		trace_begin_event(t, "X", name.s, name.len, r.begin_ns, r.thread);
		fprintf(t->f, ",\"dur\":%" PRIu64 ".%03" PRIu64 "}", ns_long / 1000,
			ns_long % 1000);
		return;
	}
	trace_begin_event(t, "b", name.s, name.len, r.begin_ns, r.thread);
	fprintf(t->f, ",\"cat\":\"range\",\"id\":%" PRIu64 "}", r.number);
	trace_begin_event(t, "e", name.s, name.len, ns, r.thread);
	fprintf(t->f, ",\"cat\":\"range\",\"id\":%" PRIu64 "}", r.number);
}

static void on_range(struct trace *t, const struct lives_mark *e)
{
	if (e->kind == GMT_RANGE_BEGIN) {
		*need_item(t->open, t->open_count, t->open_room) =
			(struct range){ e->number, e->ns, e->name, e->thread };
		return;
	}
	for (size_t i = t->open_count; i-- > 0;)
		if (t->open[i].number == e->number) {
			end_range(t, i, e->ns);
			return;
		}
}

static void on_instant(struct trace *t, const struct lives_mark *e)
{
	struct defs_text name = defs_string(&t->x->recording->defs, e->name);

	if (e->kind == GMT_BLOCK_OOM) {
		trace_begin_event(t, "i", "out of memory", 13, e->ns, e->thread);
		fprintf(t->f, ",\"s\":\"p\",\"args\":{\"asked_bytes\":%" PRIu64 "}}", e->size);
	} else {
		trace_begin_event(t, "i", name.s, name.len, e->ns, e->thread);
		fprintf(t->f, ",\"s\":\"t\"}");
	}
}

static void on_event(void *ctx, const struct series_event *e)
{
	struct trace *t = ctx;
	unsigned kind = e->mark ? e->mark->kind : 0;

	write_counters(t, e);
	write_reserved(t, e);
	if (kind == GMT_RANGE_BEGIN || kind == GMT_RANGE_END)
		on_range(t, e->mark);
	else if (kind == GMT_BLOCK_OOM || kind == GMT_MARK)
		on_instant(t, e->mark);
}

static void write_name(struct trace *t, const char *what, uint32_t thread, const char *s,
		       size_t len)
{
	trace_begin_event(t, "M", what, strlen(what), t->x->timeline.model.first_ns, thread);
	fprintf(t->f, ",\"args\":{\"name\":");
	emit_json_string(t->f, s, len);
	fprintf(t->f, "}}");
}

static void write_names(struct trace *t)
{
	const struct defs *d = &t->x->recording->defs;
	const struct defs_thread *threads = d->threads.items;
	struct defs_text argv = defs_meta(d, "argv");

	write_name(t, "process_name", 0, argv.len ? argv.s : "recorded process",
		   argv.len ? strlen(argv.s) : 16);
	for (size_t i = 0; i < d->threads.count; i++)
		write_name(t, "thread_name", threads[i].id, threads[i].name.s, threads[i].name.len);
}

int export_perfetto(struct export *x)
{
	struct trace *t = need_new(sizeof(*t));

	t->x = x;
	t->f = x->f;
	fprintf(t->f, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
	write_names(t);
	export_series(x, &(struct series_sink){ .change = on_change, .event = on_event, .ctx = t });
	while (t->open_count)
		end_range(t, t->open_count - 1, x->timeline.model.last_ns);
	fprintf(t->f, "\n]}\n");
	free(t->open);
	free(t);
	return 0;
}
