/* SPDX-License-Identifier: Apache-2.0 */
/*
 * later IN OUT FORM KIND NTH: the recording IN written again by a later version of the format,
 * which has one more kind: an event of it behind every NTH event, and a definition. Built by
 * test_format_versions.py in a copy of format/ to whose tables the kinds were added.
 *
 * FORM: columns (as recorders write), records (as version 1 did), live (a process that was killed).
 */
#include "../../format/record.h"
#include "../unit/recordings.h"

#include <fcntl.h>
#include <unistd.h>

static struct {
	struct gmt_writer *writer;
	struct gmt_codec codec;
	uint8_t raw[GMT_BLOCK_RAW_MAX];
	struct gmt_block_header block;
	struct bytes live;
	char *form;
	unsigned kind, every;
	uint64_t events, slots;
	int fd;
} out;

static bool is_form(const char *name)
{
	return !strcmp(out.form, name);
}

static void end_block(void)
{
	struct gmt_block_header *h = &out.block;

	h->stored_bytes = h->raw_bytes;
	gmt_block_seal(h, out.raw);
	assert_int_equal(gmt_writer_append(out.writer, h, out.raw), 0);
	memset(&out.codec, 0, sizeof(out.codec));
	*h = (struct gmt_block_header){ .type = GMT_BLOCK_EVENTS };
}

static void put_record(const struct gmt_event *e)
{
	struct gmt_block_header *h = &out.block;

	if (h->raw_bytes + GMT_EVENT_MAX > sizeof(out.raw))
		end_block();
	h->raw_bytes += (uint32_t)gmt_encode_event(&out.codec, e, out.raw + h->raw_bytes);
	h->first_seq = h->count ? h->first_seq : e->seq;
	h->first_ns = h->count ? h->first_ns : e->time_ns;
	h->last_seq = e->seq;
	h->last_ns = e->time_ns;
	h->count++;
}

static void write_event(const struct gmt_event *e)
{
	if (is_form("columns"))
		assert_int_equal(gmt_writer_event(out.writer, e), 0);
	else if (is_form("records"))
		put_record(e);
	else
		assert_true(gmt_ring_push(
			live_ring(out.live, (uint32_t)(out.slots++ / GMT_RING_SLOTS)), e));
}

static int copy_event(void *ctx, const struct gmt_event *e)
{
	struct gmt_event more = { .kind = (uint16_t)out.kind,
				  .time_ns = e->time_ns,
				  .thread = e->thread,
				  .addr = e->addr + 512,
				  .size = 1 << 20,
				  .arg0 = 7,
				  .stack = e->stack,
				  .device = -1 };
	struct gmt_event same = *e;

	(void)ctx;
	if (e->kind == GMT_END && is_form("live"))
		return 0;
	same.seq = 2 * e->seq; /* the same with and without the kind, for answers that show it */
	more.seq = same.seq + 1;
	write_event(&same);
	if (++out.events % out.every == 0)
		write_event(&more);
	return 0;
}

static int copy_def(void *ctx, const struct gmt_def *d)
{
	(void)ctx;
	return gmt_writer_def(out.writer, d);
}

static unsigned kind_by_name(const char *name)
{
	for (unsigned k = 1; k < 256; k++)
		if (!strcmp(gmt_kind_name(k), name))
			return k;
	fprintf(stderr, "later: no kind %s\n", name);
	exit(1);
}

static void copy(const char *path)
{
	static const struct gmt_tool tool = { .def = copy_def, .event = copy_event };
	struct gmt_def d = { out.kind < 128 ? GMT_DEF_HINT_TEXT : GMT_DEF_SWAP_TEXT, 1, 5,
			     "later" };
	int err;
	struct gmt_reader *r = gmt_reader_open(path, &err);

	assert_non_null(r);
	out.writer = open_writer(out.fd, gmt_reader_info(r)->pid);
	out.live = new_live(gmt_reader_info(r)->pid, 16);
	assert_int_equal(gmt_reader_run(r, 0, UINT64_MAX, &tool, NULL), 0);
	if (out.kind >= 64)
		assert_int_equal(gmt_writer_def(out.writer, &d), 0);
	gmt_reader_close(r);
}

int main(int argc, char **argv)
{
	char path[4096];

	if (argc != 6)
		return 2;
	out.form = argv[3];
	out.kind = kind_by_name(argv[4]);
	out.every = (unsigned)atoi(argv[5]);
	out.block.type = GMT_BLOCK_EVENTS;
	out.fd = open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0600);
	copy(argv[1]);
	if (is_form("records"))
		end_block();
	assert_int_equal(
		is_form("live") ? gmt_writer_flush(out.writer) : gmt_writer_finish(out.writer), 0);
	snprintf(path, sizeof(path), "%s.live", argv[2]);
	if (is_form("live"))
		write_file(path, out.live.data, out.live.len);
	return 0;
}
