/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of earlier events: programs that repeat, nearly repeat or do not repeat come back as they
 * were; a repeat that the reader names is one; forged references are refused, and what stands
 * before them is read.
 *
 * links: tests/unit/recordings.c tests/unit/training.c
 */
#include <fcntl.h>
#include <unistd.h>

#include "../../format/codec_copies.h"
#include "../../format/record.h"
#include "../../format/varint.h"
#include "recordings.h"

#define STEP_MOST 600

/* A program: its step, and what the next event is made of. */
struct program {
	struct chance chance;
	struct gmt_event step[STEP_MOST];
	uint32_t length;
	uint64_t seq, now;
	uint32_t scope; /* is added to scopes, as range to numbers of ranges */
	uint64_t range;
};

static bool is_range(unsigned kind)
{
	return kind == GMT_RANGE_BEGIN || kind == GMT_RANGE_END;
}

static bool is_tag(unsigned kind)
{
	return kind >= GMT_TAG_LEAF && kind <= GMT_TAG_MOVED;
}

static struct gmt_event any_event(struct program *p)
{
	uint64_t extra = chance_below(&p->chance, 10);
	struct gmt_event e = extra ? chance_event(&p->chance) : chance_extra(&p->chance);

	if (chance_below(&p->chance, 4) == 0)
		e = (struct gmt_event){ .kind = GMT_RANGE_BEGIN, .name = 5, .device = -1 };
	if (chance_below(&p->chance, 4) == 0)
		e = (struct gmt_event){ .kind = GMT_TAG_RELEASED, .device = -1 };
	return e;
}

static void begin_program(struct program *p, uint64_t chance, uint32_t length)
{
	*p = (struct program){ .chance = { chance }, .length = length };
	for (uint32_t i = 0; i < length; i++)
		p->step[i] = any_event(p);
}

/* The event as it happens now: with a time, and numbers of its own. */
static struct gmt_event now(struct program *p, struct gmt_event e)
{
	e.seq = ++p->seq;
	e.time_ns = p->now += 1000 + chance_below(&p->chance, 5000);
	if (e.scope)
		e.scope += p->scope;
	if (is_range(e.kind))
		e.arg0 += p->range;
	if (is_tag(e.kind) && gmt_kind_fields(e.kind) & F_ARG0)
		e.arg0 = 0x7f0000000000 + 16 * chance_below(&p->chance, 3000);
	return e;
}

/* A step in which each event is changed, left out or doubled with a chance of 1 in `odd`. */
static void run_step(struct program *p, uint64_t odd,
		     void (*event)(void *ctx, const struct gmt_event *e), void *ctx)
{
	for (uint32_t i = 0; i < p->length; i++) {
		uint64_t other = chance_below(&p->chance, odd);
		struct gmt_event e = now(p, other == 1 ? any_event(p) : p->step[i]);

		if (other == 2)
			e.seq = p->seq += 7; /* the events between were dropped */
		if (other != 3)
			event(ctx, &e);
		if (other == 4) {
			e = now(p, p->step[i]);
			event(ctx, &e);
		}
	}
	p->scope += 11;
	p->range += 13;
}

/* ---- the codec ---- */

struct pair {
	struct gmt_codec out, in;
	struct gmt_copies copies;
	struct gmt_past past;
	uint8_t room[GMT_COLUMNS][1 << 20], *at[GMT_COLUMNS];
	struct gmt_event *kept;
	uint32_t count, copied;
};

static struct pair *new_pair(void)
{
	struct pair *p = calloc(1, sizeof(*p));

	p->kept = calloc(100000, sizeof(*p->kept));
	for (unsigned i = 0; i < GMT_COLUMNS; i++)
		p->at[i] = p->room[i];
	gmt_copies_begin(&p->copies);
	return p;
}

static void add(void *ctx, const struct gmt_event *e)
{
	struct pair *p = ctx;

	p->kept[p->count++] = *e;
	gmt_copies_add(&p->copies, &p->out, e, p->at);
}

static size_t bytes_of(const struct pair *p)
{
	size_t n = 0;

	for (unsigned i = 0; i < GMT_COLUMNS; i++)
		n += (size_t)(p->at[i] - p->room[i]);
	return n;
}

static void columns_of(struct pair *p, struct cursor columns[GMT_COLUMNS])
{
	for (unsigned i = 0; i < GMT_COLUMNS; i++)
		columns[i] = (struct cursor){ p->room[i], p->at[i], false };
}

/* Every event comes back, and the columns are empty then. */
static void check_pair(struct pair *p)
{
	struct cursor columns[GMT_COLUMNS];
	struct gmt_event e;

	gmt_copies_end(&p->copies, &p->out, p->at);
	columns_of(p, columns);
	for (uint32_t i = 0; i < p->count; i++) {
		assert_int_equal(gmt_decode_copies(&p->past, &p->in, columns, &e), 0);
		assert_true(same_event(&e, &p->kept[i]));
		p->copied += p->past.copy.run != 0;
	}
	for (unsigned i = 0; i < GMT_COLUMNS; i++)
		assert_ptr_equal(columns[i].p, p->at[i]);
}

static void free_pair(struct pair *p)
{
	free(p->kept);
	free(p);
}

static void programs_round_trip(void **state)
{
	static const uint64_t odd[] = { UINT64_MAX, 2000, 500, 20, 7 };
	static struct program program;

	(void)state;
	for (uint64_t i = 0; i < 40; i++) {
		struct pair *p = new_pair();
		uint32_t share;

		begin_program(&program, i + 1, 1 + (uint32_t)(i * i) % STEP_MOST);
		for (uint32_t step = 0; step < 20; step++)
			run_step(&program, odd[i % 5], add, p);
		check_pair(p);
		share = 100 * p->copied / p->count;
		if (program.length > 9 && i % 5 < 3)
			assert_in_range(share, i % 5 == 2 ? 60 : 85, 100);
		free_pair(p);
	}
}

/* A step that is longer than what is kept is written again; one that just fits is not. */
static void long_steps(void **state)
{
	(void)state;
	for (uint32_t length = GMT_COPIES_PAST - 1; length <= GMT_COPIES_PAST; length++) {
		struct pair *p = new_pair();

		for (uint32_t i = 0; i < 2 * length; i++) {
			struct gmt_event e = plain_event(1 + i % length);

			e.seq = i + 1;
			e.time_ns = 1000 * i;
			add(p, &e);
		}
		check_pair(p);
		if (length == GMT_COPIES_PAST)
			assert_int_equal(p->copied, 0);
		else
			assert_in_range(p->copied, length - 4, length);
		free_pair(p);
	}
}

/* Where nothing repeats no byte is added. */
static void nothing_repeats(void **state)
{
	struct chance c = { 77 };
	struct pair *p = new_pair(), *plain = new_pair();

	(void)state;
	for (uint32_t i = 0; i < 5000; i++) {
		struct gmt_event e = chance_event(&c);

		e.seq = i + 1;
		add(p, &e);
		gmt_encode_columns(&plain->out, &e, plain->at);
	}
	check_pair(p);
	assert_int_equal(bytes_of(p), bytes_of(plain));
	free_pair(p);
	free_pair(plain);
}

/* Replaces the reference that follows two events by another one, and says what comes of it. */
static int forge(uint64_t distance, uint64_t events, size_t cut)
{
	struct pair *p = new_pair();
	struct cursor columns[GMT_COLUMNS];
	struct gmt_event e;
	uint8_t *kind;
	int rc = 0;

	for (uint64_t i = 1; i <= 3; i++) {
		e = plain_event(i == 3 ? 9 : i); /* the third has a gap before it */
		add(p, &e);
	}
	gmt_copies_end(&p->copies, &p->out, p->at);
	kind = p->at[GMT_COL_KIND];
	*kind++ = 0;
	kind = put_varint(kind, distance);
	kind = put_varint(kind, events);
	kind = put_varint(kind, 0);
	kind = put_varint(kind, 0);
	p->at[GMT_COL_KIND] = kind - cut;
	for (unsigned i = 0; i < 20; i++) {
		*p->at[GMT_COL_TIME]++ = 0;
		*p->at[GMT_COL_LATER]++ = 1;
	}
	columns_of(p, columns);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(gmt_decode_copies(&p->past, &p->in, columns, &e), 0);
	for (uint32_t i = 0; i < 3 && rc == 0; i++)
		rc = gmt_decode_copies(&p->past, &p->in, columns, &e);
	free_pair(p);
	return rc;
}

static void forged_references(void **state)
{
	(void)state;
	assert_int_equal(forge(1, 3, 0), 0); /* the proof that forge() itself is right */
	assert_int_equal(forge(0, 3, 0), -GMT_ERR_BAD_RECORD);
	assert_int_equal(forge(1, 0, 0), -GMT_ERR_BAD_RECORD);
	assert_int_equal(forge(1, 1, 0), -GMT_ERR_BAD_RECORD); /* nothing is left after it */
	assert_int_equal(forge(4, 3, 0), -GMT_ERR_BAD_RECORD); /* before the first event */
	assert_int_equal(forge(UINT64_MAX, 3, 0), -GMT_ERR_BAD_RECORD);
	assert_int_equal(forge(GMT_COPIES_PAST, 3, 0), -GMT_ERR_BAD_RECORD);
	assert_int_equal(forge(1, UINT64_MAX, 0), -GMT_ERR_BAD_RECORD);
	assert_int_equal(forge(2, 3, 0), -GMT_ERR_BAD_RECORD); /* across the gap */
	for (size_t cut = 1; cut <= 4; cut++)
		assert_int_equal(forge(1, 3, cut), -GMT_ERR_BAD_RECORD);
}

/* ---- files ---- */

struct check {
	struct gmt_event *events;
	uint64_t count, repeated, repeats;
	struct gmt_repeat repeat;
	struct gmt_writer *writer;
};

static const struct gmt_event *with_seq(const struct check *c, uint64_t seq)
{
	uint64_t first = 0, end = c->count;

	while (first < end) {
		uint64_t middle = first + (end - first) / 2;

		if (c->events[middle].seq < seq)
			first = middle + 1;
		else
			end = middle;
	}
	assert_true(first < c->count && c->events[first].seq == seq);
	return &c->events[first];
}

static int hear_repeat(void *ctx, const struct gmt_repeat *r)
{
	struct check *c = ctx;

	assert_true(r->count > 0 && r->of_seq < r->first_seq);
	assert_true(c->repeat.first_seq + c->repeat.count <= r->first_seq);
	c->repeat = *r;
	c->repeats++;
	return 0;
}

/* An event of a repeat is what the reader's header says of it. */
static int hear_event(void *ctx, const struct gmt_event *e)
{
	struct check *c = ctx;
	const struct gmt_repeat *r = &c->repeat;
	struct gmt_event same;

	if (r->count && e->seq >= r->first_seq && e->seq - r->first_seq < r->count) {
		same = *with_seq(c, r->of_seq + (e->seq - r->first_seq));
		same.seq = e->seq;
		same.time_ns = e->time_ns;
		if (same.scope)
			same.scope += r->more_scope;
		if (is_range(e->kind))
			same.arg0 += r->more_range;
		if (is_tag(e->kind))
			same.arg0 = e->arg0;
		assert_true(same_event(&same, e));
		c->repeated++;
	}
	c->events[c->count++] = *e;
	return 0;
}

static void write_one(void *ctx, const struct gmt_event *e)
{
	struct check *c = ctx;

	c->events[c->count++] = *e;
	assert_int_equal(gmt_writer_event(c->writer, e), 0);
	if (e->seq % 5000 == 0)
		assert_int_equal(gmt_writer_flush(c->writer), 0);
}

#define STEPS 900
#define MOST  400000

static void check_repeats(const char *path, const struct check *written)
{
	static const struct gmt_tool tool = { .event = hear_event, .repeat = hear_repeat };
	struct check c = { .events = calloc(MOST, sizeof(*c.events)) };
	int err = 0;
	struct gmt_reader *r = gmt_reader_open(path, &err);

	assert_non_null(r);
	assert_int_equal(gmt_reader_run(r, 0, UINT64_MAX, &tool, &c), 0);
	assert_int_equal(c.count, written->count);
	for (uint64_t i = 0; i < c.count; i++)
		assert_true(same_event(&c.events[i], &written->events[i]));
	assert_true(c.repeated > c.count / 100 * 80);
	assert_in_range(c.repeats, 1, c.repeated / 10);
	gmt_reader_close(r);
	free(c.events);
}

/* For a part of the times the same events come, and no repeats, whose origin may not be among them.
 */
static void check_part(const char *path, const struct check *written)
{
	static const struct gmt_tool tool = { .event = hear_event, .repeat = hear_repeat };
	struct check c = { .events = calloc(MOST, sizeof(*c.events)) };
	uint64_t first = written->count / 3, last = first + 5000;
	int err = 0;
	struct gmt_reader *r = gmt_reader_open(path, &err);

	assert_int_equal(gmt_reader_run(r, written->events[first].time_ns,
					written->events[last].time_ns, &tool, &c),
			 0);
	assert_int_equal(c.count, last - first + 1);
	for (uint64_t i = 0; i < c.count; i++)
		assert_true(same_event(&c.events[i], &written->events[first + i]));
	assert_int_equal(c.repeats, 0);
	gmt_reader_close(r);
	free(c.events);
}

/* A damaged block costs the rest of its group; all others are read, and the damage is counted. */
static void check_damaged(const char *path, const struct check *written)
{
	struct bytes file = read_file(path);
	const char *other = scratch_path("copies-damaged.gmt");
	struct gmt_block_header b;
	unsigned group = 0;
	uint64_t lost = 0;
	struct heard h;

	for (size_t at = sizeof(struct gmt_file_header); at < file.len;
	     at += sizeof(b) + b.stored_bytes) {
		memcpy(&b, file.data + at, sizeof(b));
		if (b.type != GMT_BLOCK_EVENTS)
			continue;
		assert_int_equal(b.codec, GMT_CODEC_COPIES);
		assert_in_range(b.count, 1, GMT_GROUP_EVENTS);
		if (!group && b.group / GMT_GROUP_BLOCKS == 1 && gmt_block_place(&b) == 9) {
			file.data[at + sizeof(b) + b.stored_bytes / 2] ^= 0x10;
			group = b.group / GMT_GROUP_BLOCKS;
		}
		if (group && b.group / GMT_GROUP_BLOCKS == group)
			lost += b.count;
	}
	assert_true(group && lost && lost < written->count / 2);
	write_file(other, file.data, file.len);
	h = hear(other);
	assert_int_equal(h.err, 0);
	assert_int_equal(h.events_used, written->count - lost);
	assert_in_range(h.info.damaged_blocks, 1, GMT_GROUP_BLOCKS);
	heard_free(&h);
	free(file.data);
}

static void files(void **state)
{
	static struct program program;
	const char *path = scratch_path("copies.gmt");
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	struct check c = { .writer = open_writer(fd, 7) };

	(void)state;
	c.events = calloc(MOST, sizeof(*c.events));
	begin_program(&program, 3, 400);
	for (uint32_t i = 0; i < STEPS; i++)
		run_step(&program, 500, write_one, &c);
	assert_int_equal(gmt_writer_finish(c.writer), 0);
	check_repeats(path, &c);
	check_part(path, &c);
	check_damaged(path, &c);
	close_writer(c.writer);
	close(fd);
	free(c.events);
}

static void write_training(void *ctx, const struct gmt_event *e)
{
	assert_int_equal(gmt_writer_event(ctx, e), 0);
}

/* A training of equal steps takes little more than its times, whose noise is 15 bits here. */
static void training_takes_few_bytes(void **state)
{
	const char *path = scratch_path("copies-training.gmt");
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	struct gmt_writer *w = open_writer(fd, 7);
	struct heard h;
	double bytes;

	(void)state;
	train(50, write_training, w);
	assert_int_equal(gmt_writer_finish(w), 0);
	h = hear(path);
	assert_int_equal(h.err, 0);
	bytes = (double)h.info.file_bytes / (double)h.events_used;
	print_message("%zu events, %.2f bytes each\n", h.events_used, bytes);
	assert_true(bytes < 2.5);
	heard_free(&h);
	close_writer(w);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_round_trip),
		cmocka_unit_test(long_steps),
		cmocka_unit_test(nothing_repeats),
		cmocka_unit_test(forged_references),
		cmocka_unit_test(files),
		cmocka_unit_test(training_takes_few_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
