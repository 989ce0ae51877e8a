/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording from a description on stdin, for tests of commands that need known content:
 *
 *	make build/data/make_recording && build/data/make_recording OUT.gmt <<END
 *	string 1 fwd
 *	thread 1 4711 main
 *	meta key the value
 *	code 1 779 10 model.py forward 80 00
 *	node 1 0 2 4294967297
 *	event block_alloc time_ns=10 addr=0x1000 size=512 stack=1 thread=1
 *	END
 *
 * Numbers of events are given out in order, unless seq= says one. "flush" ends a block,
 *"unfinished" as the last line leaves the file without its end. REALTIME in the environment is
 * what the clock on the wall was at time_ns=0.
 */
#include "../../format/record.h"
#include "../unit/recordings.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static struct gmt_writer *writer;
static uint64_t seq;

static void check(int rc, const char *line)
{
	if (rc) {
		fprintf(stderr, "make_recording: %s: %s\n", line, gmt_strerror(rc));
		exit(1);
	}
}

static unsigned kind_by_name(const char *name)
{
	for (unsigned k = 1; k < 256; k++)
		if (!strcmp(gmt_kind_name(k), name))
			return k;
	fprintf(stderr, "make_recording: no kind %s\n", name);
	exit(1);
}

static const struct member {
	const char *name;
	size_t offset, bytes;
} members[] = {
#define MEMBER(m)                                                                     \
	{                                                                             \
#m, offsetof(struct gmt_event, m), sizeof(((struct gmt_event *)0)->m) \
	}
	MEMBER(seq),	MEMBER(time_ns), MEMBER(addr),	MEMBER(size), MEMBER(arg0),
	MEMBER(arg1),	MEMBER(stream),	 MEMBER(stack), MEMBER(name), MEMBER(scope),
	MEMBER(thread), MEMBER(device),	 MEMBER(flags),
};

static void set(struct gmt_event *e, const char *word)
{
	const char *equal = strchr(word, '=');
	uint64_t value = equal ? strtoull(equal + 1, NULL, 0) : 0;

	for (size_t i = 0; equal && i < sizeof(members) / sizeof(members[0]); i++)
		if (strlen(members[i].name) == (size_t)(equal - word) &&
		    !strncmp(members[i].name, word, equal - word)) {
			memcpy((char *)e + members[i].offset, &value, members[i].bytes);
			return;
		}
	fprintf(stderr, "make_recording: no member %s\n", word);
	exit(1);
}

static int add_event(char *rest)
{
	struct gmt_event e = { .kind = kind_by_name(strtok(rest, " ")), .seq = ++seq, .device = 0 };
	char *word;

	if (!(gmt_kind_fields(e.kind) & F_DEVICE))
		e.device = -1;
	while ((word = strtok(NULL, " ")))
		set(&e, word);
	seq = e.seq;
	return gmt_writer_event(writer, &e);
}

static uint8_t payload[65536];

static size_t put(size_t at, const void *bytes, size_t len)
{
	memcpy(payload + at, bytes, len);
	return at + len;
}

static int add_def(unsigned kind, uint32_t id, size_t len)
{
	struct gmt_def d = { kind, id, (uint32_t)len, payload };

	return gmt_writer_def(writer, &d);
}

static uint64_t number(void)
{
	const char *word = strtok(NULL, " ");

	return word ? strtoull(word, NULL, 0) : 0;
}

static const char *text(const char *ends)
{
	const char *word = strtok(NULL, ends);

	return word ? word : "";
}

static int add_string(char *rest)
{
	uint32_t id = (uint32_t)strtoul(strtok(rest, " "), NULL, 0);
	const char *s = text("");

	return add_def(GMT_DEF_STRING, id, put(0, s, strlen(s)));
}

static int add_meta(char *rest)
{
	const char *key = strtok(rest, " "), *value = text("");
	struct gmt_def_meta h = { (uint16_t)strlen(key) };

	return add_def(GMT_DEF_META, 0,
		       put(put(put(0, &h, sizeof(h)), key, strlen(key)), value, strlen(value)));
}

static int add_thread(char *rest)
{
	uint32_t id = (uint32_t)strtoul(strtok(rest, " "), NULL, 0);
	struct gmt_def_thread h = { .tid = (uint32_t)number() };
	const char *name = text("");

	h.name_len = (uint32_t)strlen(name);
	return add_def(GMT_DEF_THREAD, id, put(put(0, &h, sizeof(h)), name, strlen(name)));
}

/* id, python, first line, file, name, the line table's bytes in hex */
static int add_code(char *rest)
{
	uint32_t id = (uint32_t)strtoul(strtok(rest, " "), NULL, 0);
	struct gmt_def_code h = { .python = (uint16_t)number() };
	const char *file, *name, *byte;
	size_t len;

	h.first_line = (uint32_t)number();
	file = text(" ");
	name = text(" ");
	h.file_len = (uint32_t)strlen(file);
	h.name_len = (uint32_t)strlen(name);
	len = put(put(sizeof(h), file, h.file_len), name, h.name_len);
	while ((byte = strtok(NULL, " "))) {
		payload[len++] = (uint8_t)strtoul(byte, NULL, 16);
		h.table_len++;
	}
	put(0, &h, sizeof(h));
	return add_def(GMT_DEF_CODE, id, len);
}

/* id, parent, kind of frame, value */
static int add_node(char *rest)
{
	uint32_t id = (uint32_t)strtoul(strtok(rest, " "), NULL, 0);
	struct gmt_def_stack h = { .parent = (uint32_t)number() };

	h.frame = (uint32_t)number();
	h.value = number();
	return add_def(GMT_DEF_STACK, id, put(0, &h, sizeof(h)));
}

/* id, start, end, path */
static int add_module(char *rest)
{
	uint32_t id = (uint32_t)strtoul(strtok(rest, " "), NULL, 0);
	struct gmt_def_module h = { .start = number() };
	const char *path;

	h.end = number();
	h.bias = h.start;
	path = text("");
	h.path_len = (uint16_t)strlen(path);
	return add_def(GMT_DEF_MODULE, id, put(put(0, &h, sizeof(h)), path, h.path_len));
}

static int flush(char *rest)
{
	(void)rest;
	return gmt_writer_flush(writer);
}

static int unfinished(char *rest)
{
	check(flush(rest), "flush");
	exit(0);
}

static const struct {
	const char *word;
	int (*add)(char *rest);
} lines[] = {
	{ "event", add_event },	  { "string", add_string }, { "meta", add_meta },
	{ "thread", add_thread }, { "code", add_code },	    { "node", add_node },
	{ "module", add_module }, { "flush", flush },	    { "unfinished", unfinished },
};

static void add_line(char *line)
{
	char *rest = strchr(line, ' ');

	if (rest)
		*rest++ = 0;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (!strcmp(lines[i].word, line)) {
			check(lines[i].add(rest), line);
			return;
		}
	fprintf(stderr, "make_recording: what is \"%s\"?\n", line);
	exit(1);
}

int main(int argc, char **argv)
{
	struct gmt_writer_info info = { .pid = 4242,
					.realtime_minus_monotonic_ns = 1700000000000000000 };
	size_t n = (gmt_writer_workspace(0) + 63) / 64 * 64;
	const char *clock = getenv("REALTIME"); /* ns */
	char line[8192];
	int fd, err = 0;

	if (argc != 2)
		return 2;
	if (clock)
		info.realtime_minus_monotonic_ns = (int64_t)strtoull(clock, NULL, 10);
	fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0600);
	writer = gmt_writer_open(aligned_alloc(64, n), n, fd, &info, &err);
	check(writer ? 0 : err, argv[1]);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		if (line[0] && line[0] != '#')
			add_line(line);
	}
	check(gmt_writer_finish(writer), "finish");
	return 0;
}
