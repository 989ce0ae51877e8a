/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See recordings.h.
 */
#include "recordings.h"

#include "../../format/record.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

uint64_t chance_next(struct chance *c)
{
	c->state += 0x9e3779b97f4a7c15ULL;
	uint64_t z = c->state;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

uint64_t chance_below(struct chance *c, uint64_t n)
{
	return chance_next(c) % n;
}

uint64_t chance_wide(struct chance *c)
{
	uint64_t bits = chance_below(c, 65);

	return bits ? chance_next(c) >> (64 - bits) : 0;
}

static const uint16_t kinds[] = {
#define EVENT(name, number, layer, text, fields, meaning) number,
#include "../../format/records.def"
};

static struct gmt_event chance_values(struct chance *c, unsigned kind, unsigned f)
{
	struct gmt_event e = {
		.kind = (uint16_t)kind,
		.seq = chance_wide(c),
		.time_ns = chance_wide(c),
		.thread = (uint32_t)chance_wide(c),
		.flags = (uint16_t)chance_wide(c),
	};

	e.addr = !(f & F_ADDR)	      ? 0
		 : chance_below(c, 2) ? (1 + chance_below(c, 64)) << 9
				      : chance_wide(c);
	e.size = !(f & F_SIZE) ? 0 : chance_wide(c) << (chance_below(c, 2) ? 9 : 0);
	e.arg0 = f & F_ARG0 ? chance_wide(c) : 0;
	e.arg1 = f & F_ARG1 ? chance_wide(c) : 0;
	e.stream = f & F_STREAM ? chance_wide(c) : 0;
	e.name = f & F_NAME ? (uint32_t)chance_wide(c) : 0;
	e.scope = f & F_SCOPE ? (uint32_t)chance_wide(c) : 0;
	e.stack = f & F_STACK ? (uint32_t)chance_wide(c) : 0;
	e.device = f & F_DEVICE ? (int32_t)chance_wide(c) : -1;
	return e;
}

struct gmt_event chance_event(struct chance *c)
{
	unsigned kind = kinds[chance_below(c, sizeof(kinds) / sizeof(kinds[0]))];

	return chance_values(c, kind, gmt_kind_fields(kind));
}

struct gmt_event chance_extra(struct chance *c)
{
	unsigned kind;

	do
		kind = GMT_KIND_EXTRA + (unsigned)chance_below(c, 64);
	while (gmt_kind_is_known((uint16_t)kind)); /* its fields are given */
	return chance_values(c, kind, (unsigned)chance_below(c, F_ALL + 1));
}

bool same_event(const struct gmt_event *a, const struct gmt_event *b)
{
	return a->seq == b->seq && a->time_ns == b->time_ns && a->addr == b->addr &&
	       a->size == b->size && a->arg0 == b->arg0 && a->arg1 == b->arg1 &&
	       a->stream == b->stream && a->stack == b->stack && a->thread == b->thread &&
	       a->name == b->name && a->scope == b->scope && a->kind == b->kind &&
	       a->flags == b->flags && a->device == b->device;
}

struct gmt_event plain_event(uint64_t i)
{
	return (struct gmt_event){
		.seq = i,
		.time_ns = 1000 * i,
		.addr = 0x7f0000000000 + 512 * i,
		.size = 512 + (i * 7919 & 0xffff),
		.arg0 = i * i,
		.stack = (uint32_t)i % 97,
		.thread = 1 + (uint32_t)i % 3,
		.kind = i % 2 ? GMT_BLOCK_ALLOC : GMT_MEM_ALLOC,
		.device = (int32_t)i % 2,
	};
}

static void *grown(void *array, size_t used, size_t *room, size_t size)
{
	if (used < *room)
		return array;
	*room = *room ? *room * 2 : 256;
	array = reallocarray(array, *room, size);
	assert_non_null(array);
	return array;
}

static int hear_def(void *ctx, const struct gmt_def *d)
{
	struct heard *h = ctx;
	void *copy = malloc(d->len + 1);

	assert_non_null(copy);
	memcpy(copy, d->payload, d->len);
	h->defs = grown(h->defs, h->defs_used, &h->defs_room, sizeof(*d));
	h->defs[h->defs_used] = *d;
	h->defs[h->defs_used++].payload = copy;
	return 0;
}

static int hear_event(void *ctx, const struct gmt_event *e)
{
	struct heard *h = ctx;

	h->events = grown(h->events, h->events_used, &h->events_room, sizeof(*e));
	h->events[h->events_used++] = *e;
	return 0;
}

struct heard hear_between(const char *path, uint64_t from_ns, uint64_t to_ns)
{
	static const struct gmt_tool tool = { .def = hear_def, .event = hear_event };
	struct heard h = { 0 };
	struct gmt_reader *r = gmt_reader_open(path, &h.err);

	if (!r) {
		assert_true(h.err < 0);
		return h;
	}
	assert_int_equal(h.err, 0);
	h.err = gmt_reader_run(r, from_ns, to_ns, &tool, &h);
	h.info = *gmt_reader_info(r);
	gmt_reader_close(r);
	return h;
}

struct heard hear(const char *path)
{
	return hear_between(path, 0, UINT64_MAX);
}

void heard_free(struct heard *h)
{
	for (size_t i = 0; i < h->defs_used; i++)
		free((void *)(uintptr_t)h->defs[i].payload);
	free(h->defs);
	free(h->events);
	memset(h, 0, sizeof(*h));
}

void describe_event(FILE *to, const struct gmt_event *e)
{
	fprintf(to,
		"event seq=%llu time=%llu kind=%u thread=%u flags=%u addr=0x%llx size=%llu "
		"arg0=%llu arg1=%llu stream=%llu name=%u scope=%u device=%d stack=%u\n",
		(unsigned long long)e->seq, (unsigned long long)e->time_ns, e->kind, e->thread,
		e->flags, (unsigned long long)e->addr, (unsigned long long)e->size,
		(unsigned long long)e->arg0, (unsigned long long)e->arg1,
		(unsigned long long)e->stream, e->name, e->scope, e->device, e->stack);
}

void describe_def(FILE *to, const struct gmt_def *d)
{
	fprintf(to, "def kind=%u id=%u payload=", d->kind, d->id);
	for (uint32_t i = 0; i < d->len; i++)
		fprintf(to, "%02x", ((const uint8_t *)d->payload)[i]);
	fprintf(to, "\n");
}

/* In memory where that is to be had: thousands of files are written. */
static char folder[] = "/dev/shm/gmt-unit-XXXXXX";

static void remove_folder(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	if (system(command))
		perror(folder);
}

const char *scratch_path(const char *name)
{
	static char path[128];
	static bool made;

	if (!made) {
		if (!mkdtemp(folder)) {
			strcpy(folder, "/tmp/gmt-unit-XXXXXX");
			assert_non_null(mkdtemp(folder));
		}
		atexit(remove_folder);
		made = true;
	}
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

struct bytes read_file(const char *path)
{
	struct bytes b = { 0 };
	FILE *f = fopen(path, "rb");
	struct stat st;

	assert_non_null(f);
	assert_int_equal(fstat(fileno(f), &st), 0);
	b.len = (size_t)st.st_size;
	b.data = malloc(b.len + 1);
	assert_non_null(b.data);
	assert_int_equal(fread(b.data, 1, b.len, f), b.len);
	fclose(f);
	return b;
}

void write_file(const char *path, const void *data, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), (ssize_t)len);
	close(fd);
}

struct gmt_writer *open_writer(int fd, uint32_t pid)
{
	struct gmt_writer_info info = { .pid = pid, .realtime_minus_monotonic_ns = 1234567890 };
	size_t n = (gmt_writer_workspace(0) + 63) / 64 * 64;
	void *workspace = aligned_alloc(64, n);
	struct gmt_writer *w;
	int err;

	assert_non_null(workspace);
	w = gmt_writer_open(workspace, n, fd, &info, &err);
	if (!w)
		free(workspace);
	return w;
}

void close_writer(struct gmt_writer *w)
{
	free(w); /* the writer stands at the workspace's start */
}

struct bytes new_live(uint32_t pid, uint32_t rings)
{
	struct bytes b = { .len = GMT_LIVE_PAGE + (size_t)rings * GMT_RING_REGION };
	struct gmt_live_header *h;

	b.data = aligned_alloc(4096, (b.len + 4095) / 4096 * 4096);
	assert_non_null(b.data);
	memset(b.data, 0, b.len);
	h = (struct gmt_live_header *)b.data;
	*h = (struct gmt_live_header){
		.magic = GMT_LIVE_MAGIC,
		.version = GMT_VERSION,
		.pid = pid,
		.page = GMT_LIVE_PAGE,
		.region = GMT_RING_REGION,
		.slots = GMT_RING_SLOTS,
		.slot_bytes = GMT_SLOT_BYTES,
		.realtime_minus_monotonic_ns = 1234567890,
		.regions = rings,
	};
	for (uint32_t i = 0; i < rings; i++)
		gmt_ring_init(live_ring(b, i), i + 1);
	return b;
}

struct gmt_ring *live_ring(struct bytes live, uint32_t i)
{
	return (struct gmt_ring *)(live.data + GMT_LIVE_PAGE + (size_t)i * GMT_RING_REGION);
}
