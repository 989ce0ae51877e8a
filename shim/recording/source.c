/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Definitions pass here on their way to the file: code objects map positions to lines, stack nodes
 * name the positions that are used. Each file and line is noted once. When the drain is not busy,
 * the files are read, each in one go. A file that is newer than the process does not show the code
 * that runs: its statements are marked so, without a text.
 *
 * The drain's thread alone, but for sources_setup. Memory is mapped, never moved, and bounded; a
 * position without room gets no text.
 */
#include "source.h"

#include "../../format/pylines.h"
#include "../../format/record.h"
#include "../base/config.h"
#include "../base/file.h"
#include "../base/intern.h"
#include "output.h"
#include "source_text.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define CODES_MOST   (1u << 17)
#define LINES_SLOTS  (1u << 17) /* a power of two; half of them may be used */
#define PLACES_MOST  (1u << 16)
#define CHUNK_BYTES  (1u << 20)
#define CHUNKS_MOST  8u
#define FILE_MOST    (4u << 20)
#define TEXT_MOST    240u
#define WAITING_MOST 1024u
#define TOTAL_MOST   (2u << 20) /* bytes of payload in a recording */

struct code {
	uint32_t first_line, table_len, file_len;
	uint16_t python;
	uint64_t file_hash;
	char bytes[]; /* file name, line table */
};

struct place {
	const struct code *code; /* NULL: written */
	unsigned line;
};

static struct {
	const struct code **codes; /* by id */
	uint64_t *lines;	   /* hashes of file and line that are noted */
	struct place *places;
	char *chunk; /* holds code objects one after the other */
	size_t chunk_used;
	uint32_t chunks;
	uint32_t line_count, place_count, next; /* places before next are written */
	uint64_t waiting[WAITING_MOST];		/* positions whose code object is not defined yet */
	uint32_t waiting_count;
	uint64_t total;
	uint32_t last_id;
} s;

static uint64_t started_ns; /* wall clock */

static uint64_t wall_ns(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec;
}

void sources_setup(void)
{
	struct timespec now;

	os_clock(CLOCK_REALTIME, &now);
	started_ns = wall_ns(&now);
}

/* ---- definitions on their way to the file ---- */

static void *take(size_t bytes)
{
	void *at;

	bytes = (bytes + 7) & ~(size_t)7;
	if (bytes > CHUNK_BYTES)
		return NULL;
	if (!s.chunk || s.chunk_used + bytes > CHUNK_BYTES) {
		if (s.chunks == CHUNKS_MOST)
			return NULL;
		s.chunks++;
		s.chunk = os_map(CHUNK_BYTES);
		s.chunk_used = 0;
	}
	if (!s.chunk)
		return NULL;
	at = s.chunk + s.chunk_used;
	s.chunk_used += bytes;
	return at;
}

static void note_code(const struct gmt_def *d)
{
	const char *texts = (const char *)d->payload + sizeof(struct gmt_def_code);
	struct gmt_def_code h;
	struct code *c;

	memcpy(&h, d->payload, sizeof(h));
	if (d->id >= CODES_MOST || !h.file_len || h.file_len >= PATH_MAX || texts[0] == '<')
		return;
	c = take(sizeof(*c) + h.file_len + h.table_len);
	if (!c)
		return;
	*c = (struct code){ h.first_line, h.table_len, h.file_len, h.python,
			    intern_hash_bytes(texts, h.file_len) };
	memcpy(c->bytes, texts, h.file_len);
	memcpy(c->bytes + h.file_len, texts + h.file_len + h.name_len, h.table_len);
	s.codes[d->id] = c;
}

/* Notes a file and line. False: they are noted already, or there is no room. */
static bool note_line(const struct code *c, unsigned line)
{
	uint64_t hash = intern_mix(c->file_hash + line) | 1;
	uint32_t at = (uint32_t)(hash >> 8);

	for (;; at++) {
		uint64_t *slot = &s.lines[at & (LINES_SLOTS - 1)];

		if (*slot == hash || s.line_count == LINES_SLOTS / 2)
			return false;
		if (!*slot) {
			*slot = hash;
			s.line_count++;
			return true;
		}
	}
}

static void note_place(const struct code *c, uint64_t value)
{
	unsigned line = gmt_pylines_line(c->python, c->first_line, c->bytes + c->file_len,
					 c->table_len, (int32_t)(uint32_t)value >> 1);

	if (line && s.place_count < PLACES_MOST && note_line(c, line))
		s.places[s.place_count++] = (struct place){ c, line };
}

/* A thread defines a code object before the first node that uses it, but another thread's node can
 * arrive earlier. Its position then waits. */
static void note_node(const struct gmt_def *d)
{
	struct gmt_def_stack node;

	memcpy(&node, d->payload, sizeof(node));
	if (node.frame != GMT_FRAME_PYTHON || node.value >> 32 >= CODES_MOST)
		return;
	if (s.codes[node.value >> 32])
		note_place(s.codes[node.value >> 32], node.value);
	else if (s.waiting_count < WAITING_MOST)
		s.waiting[s.waiting_count++] = node.value;
}

static void look_at_waiting(void)
{
	uint32_t n = s.waiting_count;

	s.waiting_count = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t value = s.waiting[i];

		if (s.codes[value >> 32])
			note_place(s.codes[value >> 32], value);
		else
			s.waiting[s.waiting_count++] = value;
	}
}

static bool have_tables(void)
{
	if (s.places)
		return true;
	s.codes = os_map(CODES_MOST * sizeof(*s.codes));
	s.lines = os_map(LINES_SLOTS * sizeof(*s.lines));
	s.places = os_map(PLACES_MOST * sizeof(*s.places));
	if (s.codes && s.lines && s.places)
		return true;
	os_unmap(s.codes, CODES_MOST * sizeof(*s.codes));
	os_unmap(s.lines, LINES_SLOTS * sizeof(*s.lines));
	os_unmap(s.places, PLACES_MOST * sizeof(*s.places));
	memset(&s, 0, sizeof(s));
	return false;
}

void sources_note(const struct gmt_def *d)
{
	if (d->kind != GMT_DEF_CODE && d->kind != GMT_DEF_STACK)
		return;
	if (!gmt_config.source || s.total >= TOTAL_MOST || !have_tables())
		return;
	if (d->kind == GMT_DEF_CODE)
		note_code(d);
	else
		note_node(d);
}

/* ---- reading ---- */

struct source_file {
	char *bytes; /* NULL: not there, or not readable */
	size_t len;
	bool changed; /* since the program started */
};

static bool open_source(struct file *f, const struct code *c)
{
	char path[2 * PATH_MAX];
	bool relative = c->bytes[0] != '/';

	snprintf(path, sizeof(path), "%s%s%.*s", relative ? output_start_dir() : "",
		 relative ? "/" : "", (int)c->file_len, c->bytes);
	return file_open(f, AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
}

static struct source_file load(const struct code *c, size_t *mapped)
{
	struct source_file f = { 0 };
	struct file file;
	struct stat st;
	ssize_t n = 0;

	*mapped = 0;
	if (!open_source(&file, c))
		return f;
	if (!fstat(file.fd, &st) && S_ISREG(st.st_mode) && st.st_size) {
		f.changed = wall_ns(&st.st_mtim) > started_ns;
		*mapped = st.st_size < FILE_MOST ? (size_t)st.st_size : FILE_MOST;
		f.bytes = f.changed ? NULL : os_map(*mapped);
		n = f.bytes ? file_read(&file, f.bytes, *mapped) : 0;
		f.len = n > 0 ? (size_t)n : 0;
	}
	file_close(&file);
	return f;
}

static void write_statement(bool (*emit)(const struct gmt_def *d), const struct code *c,
			    unsigned line, const struct source_file *f)
{
	static char payload[sizeof(struct gmt_def_source) + PATH_MAX + TEXT_MOST];
	struct gmt_def_source h = { .line = line, .file_len = c->file_len };
	struct gmt_def d = { .kind = GMT_DEF_SOURCE, .id = ++s.last_id, .payload = payload };
	char *text = payload + sizeof(h) + c->file_len;
	size_t n = 0;
	int cut = 0;

	if (f->bytes)
		n = source_text(f->bytes, f->len, line, text, TEXT_MOST, &cut);
	if (!n && !f->changed)
		return;
	h.flags = (cut ? GMT_SOURCE_CUT : 0) | (f->changed ? GMT_SOURCE_CHANGED : 0);
	memcpy(payload, &h, sizeof(h));
	memcpy(payload + sizeof(h), c->bytes, c->file_len);
	d.len = (uint32_t)(sizeof(h) + c->file_len + n);
	s.total += d.len;
	emit(&d);
}

static bool same_file(const struct code *a, const struct code *b)
{
	return a->file_hash == b->file_hash && a->file_len == b->file_len &&
	       !memcmp(a->bytes, b->bytes, a->file_len);
}

bool sources_write(bool (*emit)(const struct gmt_def *d))
{
	const struct code *c;
	struct source_file f;
	size_t mapped;

	look_at_waiting();
	while (s.next < s.place_count && !s.places[s.next].code)
		s.next++;
	if (s.next == s.place_count || s.total >= TOTAL_MOST)
		return false;
	c = s.places[s.next].code;
	f = load(c, &mapped);
	for (uint32_t i = s.next; i < s.place_count && s.total < TOTAL_MOST; i++) {
		struct place *p = &s.places[i];

		if (!p->code || !same_file(p->code, c))
			continue;
		write_statement(emit, c, p->line, &f);
		p->code = NULL;
	}
	os_unmap(f.bytes, mapped);
	return true;
}

void sources_forget(void)
{
	memset(&s, 0, sizeof(s));
}
