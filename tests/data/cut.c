/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Staged refusals for tests/future: a whole recording that ends at one of its allocations, as if
 * the device had had no room for it.
 *
 *	cut IN.gmt                    prints the events at which that can be staged: "SEQ SIZE"
 *	cut IN.gmt SEQ OUT.gmt ...    writes the recording until that event, once for each pair;
 *	                              SEQ with a minus sign: it only ends there, without a failure
 *	cut -n IN.gmt ...             the same without autograd's tags
 *
 * Recorded is what PyTorch does then: cudaMalloc fails, the segments that nothing lies in go back
 * to the device, cudaMalloc fails again, the allocator reports it. The card is as large as what was
 * in use then. An allocation that a free piece of another segment has room for is none.
 */
#include "../../format/record.h"
#include "../unit/recordings.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "../../viewer/base/map.h"
#include "../../viewer/base/need.h"

#define MIB (1ull << 20)

struct piece {
	uint64_t addr, size;
};

struct pieces {
	struct piece *items;
	size_t count, room;
};

/* What lies on a device at an event. */
struct scene {
	int device;
	struct pieces blocks, segments, libraries; /* segments: of the framework */
	uint64_t driver, reserved; /* bytes of CUDA's calls, of the allocator's among them */
	uint64_t first_context;	   /* in use by no call, at the first sample */
	bool sampled, expandable;  /* expandable: segments are mappings, which are not staged */
};

static void add_piece(struct pieces *p, uint64_t addr, uint64_t size)
{
	*need_item(p->items, p->count, p->room) = (struct piece){ addr, size };
}

static uint64_t take_piece(struct pieces *p, uint64_t addr)
{
	for (size_t i = p->count; i-- > 0;)
		if (p->items[i].addr == addr) {
			uint64_t size = p->items[i].size;

			p->items[i] = p->items[--p->count];
			return size;
		}
	return 0;
}

static void follow_event(struct scene *s, const struct gmt_event *e)
{
	if (e->kind == GMT_MAP)
		s->expandable = true;
	if (e->device != s->device && e->kind != GMT_MEM_FREE)
		return;
	if (e->kind == GMT_BLOCK_ALLOC) {
		add_piece(&s->blocks, e->addr, e->size);
	} else if (e->kind == GMT_BLOCK_FREE) {
		take_piece(&s->blocks, e->addr);
	} else if (e->kind == GMT_MEM_ALLOC && e->arg0 == GMT_MEM_DEVICE) {
		add_piece(e->flags & GMT_FLAG_FRAMEWORK ? &s->segments : &s->libraries, e->addr,
			  e->size);
		s->driver += e->size;
		s->reserved += e->flags & GMT_FLAG_FRAMEWORK ? e->size : 0;
	} else if (e->kind == GMT_MEM_FREE) {
		uint64_t size = take_piece(
			e->flags & GMT_FLAG_FRAMEWORK ? &s->segments : &s->libraries, e->addr);

		s->driver -= size;
		s->reserved -= e->flags & GMT_FLAG_FRAMEWORK ? size : 0;
	} else if (e->kind == GMT_MEMINFO && !s->sampled && e->arg1) {
		s->sampled = true;
		s->first_context = e->arg1 - e->arg0 - s->driver;
	}
}

static int by_address(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	return (x->addr > y->addr) - (x->addr < y->addr);
}

/* The largest gap between blocks in a segment; the whole segment if there is none. */
static uint64_t gap_in(const struct scene *s, const struct piece *segment, size_t *at)
{
	uint64_t from = segment->addr, end = from + segment->size, largest = 0;

	for (; *at < s->blocks.count && s->blocks.items[*at].addr < end; ++*at) {
		const struct piece *b = &s->blocks.items[*at];

		if (b->addr < segment->addr)
			continue;
		largest = b->addr - from > largest ? b->addr - from : largest;
		from = b->addr + b->size;
	}
	return end - from > largest ? end - from : largest;
}

static bool is_small(uint64_t size)
{
	return size <= MIB;
}

/* No segment of its kind that something else lies in has a gap for it. */
static bool is_refusable(struct scene *s, const struct gmt_event *e)
{
	size_t at = 0;

	qsort(s->blocks.items, s->blocks.count, sizeof(*s->blocks.items), by_address);
	qsort(s->segments.items, s->segments.count, sizeof(*s->segments.items), by_address);
	for (size_t i = 0; i < s->segments.count; i++) {
		const struct piece *x = &s->segments.items[i];
		uint64_t gap = gap_in(s, x, &at);

		if (gap < x->size && gap >= e->size && is_small(e->size) == (x->size == 2 * MIB))
			return false;
	}
	return true;
}

static uint64_t segment_bytes(uint64_t size)
{
	if (is_small(size))
		return 2 * MIB;
	return size < 10 * MIB ? 20 * MIB : (size + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
}

struct copy {
	struct gmt_writer *writer;
	uint64_t seq, time;
};

static void put_event(struct copy *c, struct gmt_event e)
{
	e.seq = ++c->seq;
	e.time_ns = c->time;
	assert_int_equal(gmt_writer_event(c->writer, &e), 0);
}

/* room < 0: more is in use than such a card has, which no sample can say. */
static void put_failure(struct copy *c, const struct gmt_event *e, uint64_t total, int64_t room)
{
	struct gmt_event fail = *e, info = { .kind = GMT_MEMINFO, .device = e->device };

	fail.kind = GMT_MEM_FAIL;
	fail.addr = 0;
	fail.size = segment_bytes(e->size);
	fail.arg0 = GMT_MEM_DEVICE;
	fail.arg1 = 2;
	fail.name = 0;
	fail.flags = GMT_FLAG_FRAMEWORK;
	info.thread = e->thread;
	info.arg0 = (uint64_t)room;
	info.arg1 = total;
	put_event(c, fail);
	if (room >= 0)
		put_event(c, info);
}

/* Segments without blocks go back; returns their bytes. */
static uint64_t put_releases(struct copy *c, struct scene *s, const struct gmt_event *e, bool write)
{
	uint64_t bytes = 0;
	size_t at = 0;

	for (size_t i = 0; i < s->segments.count; i++) {
		const struct piece *x = &s->segments.items[i];
		struct gmt_event gone = { .kind = GMT_MEM_FREE,
					  .thread = e->thread,
					  .device = e->device,
					  .addr = x->addr,
					  .size = x->size,
					  .arg0 = GMT_MEM_DEVICE,
					  .flags = GMT_FLAG_FRAMEWORK };

		if (gap_in(s, x, &at) < x->size)
			continue;
		bytes += x->size;
		if (write)
			put_event(c, gone);
	}
	return bytes;
}

static void put_refusal(struct copy *c, struct scene *s, const struct gmt_event *e)
{
	uint64_t room = segment_bytes(e->size) / 2, used, empty;
	struct gmt_event oom = *e;

	room = room < 10 * MIB ? room : 10 * MIB;
	is_refusable(s, e); /* in order of addresses */
	empty = put_releases(c, s, e, false);
	used = s->driver - empty + s->first_context;
	put_failure(c, e, used + room, (int64_t)(room - empty));
	put_releases(c, s, e, true);
	put_failure(c, e, used + room, (int64_t)room);
	oom.kind = GMT_BLOCK_OOM;
	oom.addr = 0;
	oom.arg0 -= e->size;
	oom.arg1 = s->reserved - empty;
	put_event(c, oom);
}

/* Samples as of the smaller card. False: more was in use than it has. */
static bool is_on_card(struct gmt_event *e, uint64_t total)
{
	uint64_t used = e->arg1 - e->arg0;

	if (e->kind != GMT_MEMINFO || !e->arg1)
		return true;
	e->arg1 = total;
	e->arg0 = total - used;
	return total >= used;
}

static uint64_t card_of(const struct scene *s, const struct gmt_event *e)
{
	struct scene copy = *s;
	uint64_t room = segment_bytes(e->size) / 2;

	return s->driver - put_releases(NULL, &copy, e, false) + s->first_context +
	       (room < 10 * MIB ? room : 10 * MIB);
}

static bool is_tag(const struct gmt_event *e)
{
	return e->kind >= GMT_TAG_LEAF && e->kind <= GMT_TAG_ASKED;
}

static bool says_tags(const struct gmt_def *d)
{
	return d->kind == GMT_DEF_META && memmem(d->payload, d->len, "torch.tags", 10);
}

static void write_cut(const struct heard *h, uint64_t seq, bool refused, bool tags,
		      const char *path)
{
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
	struct copy c = { .writer = open_writer(fd, h->info.pid) };
	struct scene s = { 0 };
	size_t end = 0;
	uint64_t total;

	while (end < h->events_used && h->events[end].seq != seq)
		end++;
	assert_true(end < h->events_used && h->events[end].kind == GMT_BLOCK_ALLOC);
	s.device = h->events[end].device;
	for (size_t i = 0; i < end; i++)
		follow_event(&s, &h->events[i]);
	is_refusable(&s, &h->events[end]);
	total = card_of(&s, &h->events[end]);
	for (size_t i = 0; i < h->defs_used; i++)
		if (tags || !says_tags(&h->defs[i]))
			assert_int_equal(gmt_writer_def(c.writer, &h->defs[i]), 0);
	for (size_t i = 0; i < end; i++) {
		struct gmt_event e = h->events[i];

		if ((tags || !is_tag(&e)) && (!refused || is_on_card(&e, total)))
			assert_int_equal(gmt_writer_event(c.writer, &e), 0);
	}
	c.seq = seq - 1;
	c.time = h->events[end].time_ns;
	if (refused)
		put_refusal(&c, &s, &h->events[end]);
	assert_int_equal(gmt_writer_finish(c.writer), 0);
	close_writer(c.writer);
	close(fd);
	free(s.blocks.items);
	free(s.segments.items);
	free(s.libraries.items);
}

static void print_events(const struct heard *h)
{
	struct scene s = { 0 };

	for (size_t i = 0; i < h->events_used && !s.expandable; i++) {
		const struct gmt_event *e = &h->events[i];

		if (e->kind == GMT_BLOCK_ALLOC && e->device == 0 && s.sampled &&
		    is_refusable(&s, e))
			printf("%llu %llu\n", (unsigned long long)e->seq,
			       (unsigned long long)e->size);
		follow_event(&s, e);
	}
	free(s.blocks.items);
	free(s.segments.items);
	free(s.libraries.items);
}

int main(int argc, char **argv)
{
	bool tags = argc < 2 || strcmp(argv[1], "-n") != 0;
	struct heard h;

	argv += !tags;
	argc -= !tags;
	h = hear(argc > 1 ? argv[1] : "");
	if (h.err || argc % 2) {
		fprintf(stderr, "usage: cut [-n] IN.gmt [SEQ OUT.gmt]...\n");
		return 2;
	}
	if (argc == 2)
		print_events(&h);
	for (int i = 2; i < argc; i += 2)
		write_cut(&h, strtoull(argv[i] + (*argv[i] == '-'), NULL, 10), *argv[i] != '-',
			  tags, argv[i + 1]);
	heard_free(&h);
	return 0;
}
