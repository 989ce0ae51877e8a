/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory by class at every event: on runs by chance, with all that makes a block's class change in
 * its life, the sums are the model's curve after each event, and what copies of the live blocks
 * taken at that moment say, class by class. Envelopes are compared with the whole series.
 * links: tests/unit/recordings.c
 */
#include "recordings.h"

#include <fcntl.h>
#include <unistd.h>

#include "../../format/record.h"
#include "../../viewer/moments/envelope.h"
#include "../../viewer/moments/moments.h"
#include "../../viewer/model/optimizers.h"

#define TORCH "/v/lib/python3.11/site-packages/torch/"

enum { DEVICES = 3, EVENTS = 3000, BLOCKS = 24, MAIN = 1, ENGINE = 2 };
enum { STRING_STEP = 1, STRING_CLEAR, STRING_NODE, STRING_OTHER_STEP };

/* A stack each: its frames from the outside in, by index in `codes`. */
static const char *const codes[][2] = {
	{ "/home/u/train.py", "main" },
	{ TORCH "nn/modules/module.py", "Module._call_impl" },
	{ "/home/u/net.py", "Net.forward" },
	{ TORCH "nn/parallel/distributed.py", "_ddp_init_helper" },
	{ TORCH "nn/modules/linear.py", "Linear.__init__" },
	{ TORCH "optim/optimizer.py", "Optimizer.load_state_dict" },
	{ TORCH "distributed/distributed_c10d.py", "all_reduce" },
	{ TORCH "utils/checkpoint.py", "X.<locals>.recompute_fn" },
	{ TORCH "utils/data/_utils/pin_memory.py", "pin_memory" },
};
static const uint8_t chains[][3] = { { 0 },    { 0, 1, 2 }, { 0, 3 }, { 0, 4 },
				     { 0, 5 }, { 0, 6 },    { 0, 7 }, { 0, 8 } };
enum { STACKS = sizeof(chains) / sizeof(chains[0]) };

struct run {
	struct gmt_writer *writer;
	struct chance chance;
	uint64_t seq, time;
	bool lives[DEVICES][BLOCKS];
	bool in_step;
	bool frees_in_backward; /* as data parallelism does with gradients that went into a bucket
				 */
	uint64_t steps;
};

static void define(struct run *r, unsigned kind, uint32_t id, const void *head, size_t n,
		   const char *a, const char *b, const char *c)
{
	char payload[512];
	size_t len = n;

	memcpy(payload, head, n);
	len += (size_t)sprintf(payload + len, "%s%s%s", a, b, c);
	assert_int_equal(
		gmt_writer_def(r->writer, &(struct gmt_def){ kind, id, (uint32_t)len, payload }),
		0);
}

static void define_all(struct run *r)
{
	struct gmt_def_thread engine = { 2, 13 };

	define(r, GMT_DEF_STRING, STRING_STEP, "", 0, "Optimizer.step#AdamW.step", "", "");
	define(r, GMT_DEF_STRING, STRING_OTHER_STEP, "", 0, "Optimizer.step#Adagrad.step", "", "");
	define(r, GMT_DEF_STRING, STRING_CLEAR, "", 0, "Optimizer.zero_grad#A.zero_grad", "", "");
	define(r, GMT_DEF_STRING, STRING_NODE, "", 0, "AddmmBackward0", "", "");
	define(r, GMT_DEF_THREAD, ENGINE, &engine, sizeof(engine), "pt_autograd_0", "", "");
	for (uint32_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		struct gmt_def_code c = { .first_line = 10,
					  .python = 779,
					  .file_len = (uint32_t)strlen(codes[i][0]),
					  .name_len = (uint32_t)strlen(codes[i][1]),
					  .table_len = 2 };

		define(r, GMT_DEF_CODE, i + 1, &c, sizeof(c), codes[i][0], codes[i][1], "\x80\x7f");
	}
	for (uint32_t i = 0; i < STACKS; i++) {
		uint32_t parent = 0;

		for (uint32_t k = 0; k < 3 && (!k || chains[i][k]); k++) {
			struct gmt_def_stack s = { (uint64_t)(chains[i][k] + 1) << 32 | 1, parent,
						   GMT_FRAME_PYTHON };

			parent = 3 * i + 1 + k;
			define(r, GMT_DEF_STACK, parent, &s, sizeof(s), "", "", "");
		}
	}
}

static uint32_t stack_of(uint32_t i)
{
	uint32_t depth = 1;

	while (depth < 3 && chains[i][depth])
		depth++;
	return 3 * i + depth;
}

static void say(struct run *r, struct gmt_event e)
{
	e.seq = ++r->seq;
	e.time_ns = r->time += chance_below(&r->chance, 3); /* many at the same time */
	if (!e.thread)
		e.thread = MAIN;
	if (!(gmt_kind_fields(e.kind) & F_DEVICE))
		e.device = -1;
	assert_int_equal(gmt_writer_event(r->writer, &e), 0);
}

/* The last device has no framework: its memory comes from CUDA calls. Sometimes a block is born
 * where one lives. */
static void allocate_or_free(struct run *r, int device)
{
	uint64_t i = chance_below(&r->chance, BLOCKS);
	bool driver = device == DEVICES - 1, birth = !r->lives[device][i];
	struct gmt_event e = { .addr = (uint64_t)(device + 1) << 32 | i << 16,
			       .size = 512 * (1 + chance_below(&r->chance, 64)),
			       .device = device,
			       .stack = stack_of((uint32_t)chance_below(&r->chance, STACKS)) };

	if (!birth && !chance_below(&r->chance, 8))
		birth = true;
	r->lives[device][i] = birth;
	e.kind = driver	 ? birth ? GMT_MEM_ALLOC : GMT_MEM_FREE
		 : birth ? GMT_BLOCK_ALLOC
			 : GMT_BLOCK_FREE;
	if (driver)
		e.arg0 = birth ? 1 + chance_below(&r->chance, 9) : 0;
	if (r->frees_in_backward ? !birth : !chance_below(&r->chance, 3)) {
		e.thread = ENGINE;
		e.name = driver ? 0 : STRING_NODE;
		e.scope = driver ? 0 : 1;
		e.stack = chance_below(&r->chance, 2) ? 0 : e.stack;
	}
	say(r, e);
}

static void tag(struct run *r)
{
	static const uint16_t kinds[] = { GMT_TAG_SAVED,    GMT_TAG_SAVED, GMT_TAG_RELEASED,
					  GMT_TAG_RELEASED, GMT_TAG_LEAF,  GMT_TAG_GRAD };
	uint64_t device = chance_below(&r->chance, DEVICES - 1);
	struct gmt_event e = { .kind = kinds[chance_below(&r->chance, 6)],
			       .addr = (device + 1) << 32 | chance_below(&r->chance, BLOCKS) << 16,
			       .size = 8192,
			       .device = (int32_t)device,
			       .arg0 = 1 + chance_below(&r->chance, 16) };

	if (e.kind == GMT_TAG_SAVED) {
		e.arg0 = chance_below(&r->chance, 10) ? e.arg0 : 0;
		e.arg1 = chance_below(&r->chance, 8);
	}
	if (e.kind == GMT_TAG_GRAD || chance_below(&r->chance, 4) == 0)
		e.thread = ENGINE;
	say(r, e);
}

static void turn(struct run *r)
{
	struct gmt_event e = { .name = chance_below(&r->chance, 3) ? STRING_STEP : STRING_CLEAR };

	if (e.name == STRING_CLEAR) {
		e.kind = GMT_RANGE_BEGIN;
		e.arg0 = 1000 + r->seq;
		say(r, e);
		e.kind = GMT_RANGE_END;
	} else {
		r->in_step = !r->in_step;
		e.kind = r->in_step ? GMT_RANGE_BEGIN : GMT_RANGE_END;
		r->steps += r->in_step;
		e.arg0 = r->steps;
		e.name = r->steps % 2 ? STRING_STEP : STRING_OTHER_STEP;
	}
	say(r, e);
}

static void write_run(const char *path, uint64_t seed)
{
	struct run r = { .chance = { seed }, .time = 1000000 };
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	bool tags = seed % 4 != 0; /* some frameworks tell nothing of autograd */

	r.frees_in_backward = seed % 3 == 1;
	r.writer = open_writer(fd, 1);
	define_all(&r);
	for (int device = 0; device < DEVICES; device++)
		allocate_or_free(&r, device);
	while (r.seq < EVENTS) {
		uint64_t what = chance_below(&r.chance, 40);

		if (what < 20)
			allocate_or_free(&r, (int)chance_below(&r.chance, DEVICES));
		else if (what < 38 && tags)
			tag(&r);
		else
			turn(&r);
	}
	assert_int_equal(gmt_writer_finish(r.writer), 0);
	close_writer(r.writer);
	close(fd);
}

/* What a scan said after each event; what changes nothing holds on. */
struct told {
	uint64_t now[DEVICES][CATEGORIES];
	uint64_t at[EVENTS + 8][DEVICES][CATEGORIES];
	uint64_t total[EVENTS + 8][DEVICES], time[EVENTS + 8];
	size_t place[EVENTS + 8]; /* of the events that the scan showed, the last up to this one */
	bool changed[EVENTS + 8][DEVICES];
	bool seen[CATEGORIES];
	size_t count, moves, events;
};

static void hold_until(struct told *t, uint64_t seq)
{
	for (; t->count < seq; t->count++) {
		t->place[t->count] = t->events - 1;
		memcpy(t->at[t->count], t->now, sizeof(t->now));
		for (int d = 0; d < DEVICES; d++)
			for (int c = 0; c < CATEGORIES; c++)
				t->total[t->count][d] += t->now[d][c];
	}
}

static void change(void *ctx, const struct series_change *c)
{
	struct told *t = ctx;

	assert_in_range(c->device, 0, DEVICES - 1);
	hold_until(t, c->seq - 1);
	t->now[c->device][c->category] += (uint64_t)c->bytes;
	t->changed[t->count][c->device] |= c->bytes != 0;
	t->seen[c->category] = true;
	t->moves += c->kind == SERIES_JOINED;
}

static void after(void *ctx, const struct series_event *e)
{
	struct told *t = ctx;

	hold_until(t, e->seq);
	assert_int_equal(t->time[e->seq - 1], e->time_ns);
	t->place[e->seq - 1] = t->events++;
}

static int note_time(void *ctx, const struct gmt_event *e)
{
	struct told *t = ctx;

	t->time[e->seq - 1] = e->time_ns;
	return 0;
}

/* Everything of a recording that the checks need. */
struct scene {
	struct recording recording;
	struct model facts;
	struct stacks stacks;
	struct owners owners;
	struct series series;
	struct told *told;
};

static void open_scene(struct scene *s, uint64_t seed)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s", scratch_path("series.gmt"));
	write_run(path, seed);
	assert_int_equal(recording_open(&s->recording, path), 0);
	assert_int_equal(moments_read(&s->recording, &s->facts, NULL), 0);
	owners_open(&s->owners, &s->stacks, &s->recording.defs);
	s->series = (struct series){ .model = &s->facts,
				     .classifier = classifier_new(&s->facts, &s->owners),
				     .device = -1 };
	s->told = calloc(1, sizeof(*s->told));
	assert_non_null(s->told);
	assert_int_equal(recording_run(&s->recording, note_time, s->told), 0);
	series_run(&s->series,
		   &(struct series_sink){ .change = change, .event = after, .ctx = s->told });
	hold_until(s->told, s->facts.events);
	assert_int_equal(s->told->count, s->facts.events);
	assert_in_range(s->told->events, EVENTS / 4, s->facts.events);
}

static void close_scene(struct scene *s)
{
	free(s->told);
	classifier_free(s->series.classifier);
	owners_close(&s->owners);
	model_free(&s->facts);
	recording_close(&s->recording);
}

/* Copies of what is alive after an event, each judged on its own. */
static void compare_moment(struct scene *s, uint64_t seq)
{
	struct moment moments[DEVICES];
	struct classifier *c = classifier_new(&s->facts, &s->owners);

	for (int d = 0; d < DEVICES; d++) {
		uint64_t sums[CATEGORIES] = { 0 };

		moments[d] = (struct moment){ .device = d,
					      .seq = seq,
					      .framework = s->facts.devices[d].framework };
		model_take(&s->facts, &moments[d]);
		assert_true(moments[d].taken);
		for (size_t i = 0; i < moments[d].count; i++)
			sums[classify(c, &moments[d].blocks[i]).category] +=
				moments[d].blocks[i].size;
		assert_memory_equal(sums, s->told->at[seq - 1][d], sizeof(sums));
		assert_int_equal(moments[d].bytes, s->told->total[seq - 1][d]);
		moment_free(&moments[d]);
	}
	classifier_free(c);
}

/* A scan for a few moments asks for fewer classes, and says the same there. */
static void compare_few(struct scene *s, struct chance *chance)
{
	struct series few = s->series;
	struct told *t = calloc(1, sizeof(*t));
	uint64_t moments[3];

	assert_non_null(t);
	memcpy(t->time, s->told->time, sizeof(t->time));
	moments[0] = 1 + chance_below(chance, 100);
	moments[1] = moments[0] + chance_below(chance, 1000);
	moments[2] = moments[1] + chance_below(chance, 1000);
	few.moments = moments;
	few.moment_count = 3;
	series_run(&few, &(struct series_sink){ .change = change, .event = after, .ctx = t });
	hold_until(t, s->facts.events);
	for (int i = 0; i < 3; i++)
		assert_memory_equal(t->at[moments[i] - 1], s->told->at[moments[i] - 1],
				    sizeof(t->at[0]));
	assert_in_range(t->moves, 0, s->told->moves);
	free(t);
}

static void sums_are_those_of_moments(void **state)
{
	bool seen[CATEGORIES] = { 0 };
	size_t moves = 0, classes = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 8; seed++) {
		struct chance chance = { seed };
		struct scene s;

		open_scene(&s, seed);
		for (int i = 0; i < 50; i++)
			compare_moment(&s, 1 + chance_below(&chance, s.told->count));
		for (int i = 0; i < 10; i++)
			compare_few(&s, &chance);
		moves += s.told->moves;
		for (int c = 0; c < CATEGORIES; c++)
			seen[c] |= s.told->seen[c];
		close_scene(&s);
	}
	for (int c = 0; c < CATEGORIES; c++)
		classes += seen[c];
	assert_in_range(classes, 10, CATEGORIES); /* else the runs would check little */
	assert_in_range(moves, 200, SIZE_MAX);
}

static struct envelope reduce(struct scene *s, int device, enum envelope_axis axis, size_t most)
{
	struct envelope e;

	envelope_init(&e, &s->facts, device, axis, most);
	series_run(&s->series, &(struct series_sink){ .change = envelope_change,
						      .event = envelope_event,
						      .ctx = &e });
	envelope_end(&e);
	assert_in_range(e.count, 1, most);
	return e;
}

static size_t bucket_of(const struct envelope *e, const struct told *t, size_t i)
{
	unsigned __int128 place = t->place[i], span = t->events;

	if (e->axis == ENVELOPE_TIME) {
		place = t->time[i] - t->time[0];
		span = t->time[t->count - 1] - t->time[0] + 1;
	}
	return (size_t)(place * e->count / span);
}

static uint64_t sum(const uint64_t *classes)
{
	uint64_t all = 0;

	for (int c = 0; c < CATEGORIES; c++)
		all += classes[c];
	return all;
}

/* Of one bucket, against every event in it; before: what held when it began. */
static void check_bucket(const struct told *t, int d, const struct envelope_bucket *b, size_t from,
			 size_t to, uint64_t before)
{
	uint64_t min = before, max = before, last = before, changes = 0;

	for (size_t i = from; i < to; i++) {
		last = t->total[i][d];
		min = last < min ? last : min;
		max = last > max ? last : max;
		changes += t->changed[i][d];
		if (!i || t->place[i] != t->place[i - 1])
			assert_in_range(t->time[i], b->first_ns, b->last_ns);
	}
	assert_int_equal(b->min.bytes, min);
	assert_int_equal(b->max.bytes, max);
	assert_int_equal(b->last.bytes, last);
	assert_int_equal(b->events, changes);
	assert_int_equal(sum(b->at_max), max);
	assert_int_equal(sum(b->at_last), last);
	if (b->max.seq)
		assert_memory_equal(b->at_max, t->at[b->max.seq - 1][d], sizeof(b->at_max));
	if (b->last.seq)
		assert_memory_equal(b->at_last, t->at[b->last.seq - 1][d], sizeof(b->at_last));
}

static void check_envelope(struct scene *s, int device, enum envelope_axis axis, size_t most)
{
	struct envelope e = reduce(s, device, axis, most);
	const struct told *t = s->told;
	size_t from = 0, to = 0;

	for (size_t k = 0; k < e.count; k++) {
		while (to < t->count && bucket_of(&e, t, to) == k)
			to++;
		check_bucket(t, device, &e.buckets[k], from, to,
			     from ? t->total[from - 1][device] : 0);
		from = to;
	}
	assert_int_equal(to, t->count);
	assert_int_equal(envelope_peak(&e)->max.bytes,
			 model_curve(&s->facts.devices[device])->peak.bytes);
	assert_int_equal(envelope_peak(&e)->max.seq,
			 model_curve(&s->facts.devices[device])->peak.event.seq);
	envelope_free(&e);
}

static void envelopes_keep_what_is_most(void **state)
{
	static const size_t most[] = { 1, 7, 60, 1000, 2 * EVENTS };
	struct scene s;

	(void)state;
	open_scene(&s, 5);
	for (size_t i = 0; i < sizeof(most) / sizeof(most[0]); i++)
		for (int d = 0; d < DEVICES; d++) {
			check_envelope(&s, d, ENVELOPE_TIME, most[i]);
			check_envelope(&s, d, ENVELOPE_EVENTS, most[i]);
		}
	close_scene(&s);
}

static void optimizers_in_turn_are_all_named(void **state)
{
	char names[64];
	struct scene s;

	(void)state;
	open_scene(&s, 5);
	assert_string_equal(optimizers_of_spans(&s.facts.spans, &s.recording.defs, names, 64),
			    "AdamW, Adagrad");
	assert_string_equal(optimizers_of_spans(&s.facts.spans, &s.recording.defs, names, 9),
			    "AdamW, A");
	close_scene(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_are_those_of_moments),
		cmocka_unit_test(envelopes_keep_what_is_most),
		cmocka_unit_test(optimizers_in_turn_are_all_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
