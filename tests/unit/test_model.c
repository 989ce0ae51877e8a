/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The replay of events: peaks, what is alive, reserved memory, retries, moments and tags. Random
 * recordings are judged by a plain array, the rest by sums done by hand.
 * links: tests/unit/recordings.c
 */
#include "recordings.h"

#include "../../format/record.h"
#include "../../viewer/classes/classify.h"
#include "../../viewer/classes/study.h"
#include "../../viewer/moments/room.h"

#define MIB (1024 * 1024ull)

static struct defs defs;
static struct model m;
static uint64_t seq;

static void fresh(void)
{
	model_init(&m, &defs);
	study_begin(&m);
	seq = 0;
}

static void feed(struct gmt_event e)
{
	e.seq = ++seq;
	e.time_ns = seq * 10;
	model_event(&m, &e);
}

static void block(unsigned kind, int device, uint64_t addr, uint64_t size)
{
	feed((struct gmt_event){ .kind = kind, .device = device, .addr = addr, .size = size });
}

static void memory(unsigned kind, unsigned memory, unsigned flags, uint64_t addr, uint64_t size)
{
	feed((struct gmt_event){
		.kind = kind, .arg0 = memory, .flags = flags, .addr = addr, .size = size });
}

/* A plain array of blocks of one device, for events by chance. */
static void peaks_by_chance(void **state)
{
	static uint64_t sizes[500];
	struct chance c = { 5 };
	uint64_t now = 0, peak = 0, peak_seq = 0, allocs = 0;

	(void)state;
	memset(sizes, 0, sizeof(sizes));
	fresh();
	for (int i = 0; i < 50000; i++) {
		uint64_t place = chance_below(&c, 500), addr = (place + 1) << 20;

		if (sizes[place]) {
			block(GMT_BLOCK_FREE, 0, addr, sizes[place]);
			now -= sizes[place];
			sizes[place] = 0;
			continue;
		}
		sizes[place] = 512 * (1 + chance_below(&c, 1000));
		block(GMT_BLOCK_ALLOC, 0, addr, sizes[place]);
		allocs++;
		now += sizes[place];
		if (now > peak) {
			peak = now;
			peak_seq = seq;
		}
	}
	assert_int_equal(m.devices[0].blocks.peak.bytes, peak);
	assert_int_equal(m.devices[0].blocks.peak.event.seq, peak_seq);
	assert_int_equal(m.devices[0].blocks.now, now);
	assert_int_equal(model_allocs(&m.devices[0]), allocs);
	assert_int_equal(m.unknown_frees, 0);
	model_free(&m);
}

static void devices_are_apart(void **state)
{
	(void)state;
	fresh();
	block(GMT_BLOCK_ALLOC, 0, 0x1000, 100);
	block(GMT_BLOCK_ALLOC, 1, 0x1000, 300);
	block(GMT_BLOCK_FREE, 0, 0x1000, 100);
	block(GMT_BLOCK_FREE, 0, 0x1000, 100);
	block(GMT_BLOCK_ALLOC, MODEL_DEVICES, 0x1000, 1);
	block(GMT_BLOCK_ALLOC, -1, 0x1000, 1);
	assert_int_equal(m.devices[0].blocks.now, 0);
	assert_int_equal(m.devices[1].blocks.now, 300);
	assert_int_equal(m.unknown_frees, 1);
	assert_int_equal(model_main_device(&m), 1);
	model_free(&m);
}

/* A free that was not recorded: the same address comes again. */
static void address_used_again(void **state)
{
	(void)state;
	fresh();
	block(GMT_BLOCK_ALLOC, 0, 0x1000, 100);
	block(GMT_BLOCK_ALLOC, 0, 0x1000, 40);
	assert_int_equal(m.devices[0].blocks.now, 40);
	memory(GMT_MEM_ALLOC, GMT_MEM_HOST, 0, 0x9000, 10);
	memory(GMT_MEM_ALLOC, GMT_MEM_HOST, 0, 0x9000, 30);
	assert_int_equal(m.host.now, 30);
	model_free(&m);
}

static void driver_without_framework(void **state)
{
	const struct model_device *d;

	(void)state;
	fresh();
	d = &m.devices[0];
	memory(GMT_MEM_ALLOC, GMT_MEM_DEVICE, 0, 0x1000, 100);
	memory(GMT_MEM_ALLOC, GMT_MEM_ASYNC, 0, 0x2000, 50);
	memory(GMT_MEM_ALLOC, GMT_MEM_HOST, 0, 0x3000, 7);
	memory(GMT_MEM_FREE, GMT_MEM_DEVICE, 0, 0x1000, 0);
	memory(GMT_MEM_FREE, GMT_MEM_DEVICE, 0, 0x7777, 0);
	memory(GMT_MEM_FAIL, GMT_MEM_DEVICE, 0, 0, 1 << 30);
	assert_int_equal(model_curve(d)->peak.bytes, 150);
	assert_int_equal(model_curve(d)->now, 50);
	assert_int_equal(model_allocs(d), 2);
	assert_int_equal(model_frees(d), 1);
	assert_int_equal(model_ooms(d), 1);
	assert_int_equal(m.host.peak.bytes, 7);
	assert_int_equal(m.unknown_frees, 1);
	feed((struct gmt_event){ .kind = GMT_CTX_DESTROY });
	assert_int_equal(model_curve(d)->now, 0);
	assert_int_equal(m.host.now, 7);
	model_free(&m);
}

/* Physical memory lives as long as a handle or a mapping does; the cache is what is mapped. */
static void expandable_segments(void **state)
{
	const struct model_device *d;

	(void)state;
	fresh();
	d = &m.devices[0];
	memory(GMT_PHYS_CREATE, GMT_MEM_PHYSICAL, GMT_FLAG_FRAMEWORK, 0xa1, 20 * MIB);
	assert_int_equal(d->driver.now, 20 * MIB);
	assert_int_equal(d->reserved.now, 0);
	feed((struct gmt_event){
		.kind = GMT_MAP, .addr = 0x10000000, .size = 20 * MIB, .arg0 = 0xa1 });
	assert_int_equal(d->reserved.now, 20 * MIB);
	feed((struct gmt_event){ .kind = GMT_PHYS_RELEASE, .addr = 0xa1 });
	assert_int_equal(d->driver.now, 20 * MIB);
	feed((struct gmt_event){ .kind = GMT_UNMAP, .addr = 0x10000000, .size = 20 * MIB });
	assert_int_equal(d->driver.now, 0);
	assert_int_equal(d->reserved.now, 0);
	assert_int_equal(model_peak_reserved(d), 20 * MIB);
	assert_int_equal(m.unknown_frees, 0);
	model_free(&m);
}

static void reserved_is_what_the_framework_says(void **state)
{
	const struct model_device *d;

	(void)state;
	fresh();
	d = &m.devices[0];
	memory(GMT_MEM_ALLOC, GMT_MEM_DEVICE, GMT_FLAG_FRAMEWORK, 0x100000, 2 * MIB);
	assert_int_equal(d->reserved.now, 2 * MIB);
	feed((struct gmt_event){ .kind = GMT_BLOCK_ALLOC,
				 .addr = 0x100000,
				 .size = 512,
				 .arg0 = 512,
				 .arg1 = 3 * MIB });
	assert_int_equal(d->reserved.now, 3 * MIB);
	memory(GMT_MEM_ALLOC, GMT_MEM_DEVICE, 0, 0x900000, 64 * MIB);
	assert_int_equal(d->reserved.now, 3 * MIB);
	memory(GMT_MEM_FREE, GMT_MEM_DEVICE, GMT_FLAG_FRAMEWORK, 0x100000, 0);
	assert_int_equal(d->reserved.now, 1 * MIB);
	assert_int_equal(model_peak_reserved(d), 3 * MIB);
	assert_int_equal(model_curve(d)->peak.bytes, 512);
	model_free(&m);
}

static void async_backend(void **state)
{
	const struct model_device *d;

	(void)state;
	fresh();
	d = &m.devices[0];
	memory(GMT_MEM_ALLOC, GMT_MEM_ASYNC, GMT_FLAG_FRAMEWORK, 0x1000, 1000);
	memory(GMT_MEM_ALLOC, GMT_MEM_DEVICE, 0, 0x8000, 5);
	memory(GMT_MEM_FAIL, GMT_MEM_ASYNC, GMT_FLAG_FRAMEWORK, 0, 1 << 30);
	assert_int_equal(model_curve(d)->peak.bytes, 1000);
	assert_int_equal(model_ooms(d), 1);
	memory(GMT_MEM_FREE, GMT_MEM_ASYNC, GMT_FLAG_FRAMEWORK, 0x1000, 0);
	assert_int_equal(model_curve(d)->now, 0);
	assert_int_equal(d->driver.now, 5);
	assert_int_equal(model_frees(d), 1);
	model_free(&m);
}

static void retries(void **state)
{
	const unsigned own = GMT_FLAG_FRAMEWORK;

	(void)state;
	fresh();
	block(GMT_BLOCK_ALLOC, 0, 0x50, 1);
	memory(GMT_MEM_ALLOC, GMT_MEM_DEVICE, own, 0x1000, 10);
	memory(GMT_MEM_FAIL, GMT_MEM_DEVICE, own, 0, 99);
	memory(GMT_MEM_FREE, GMT_MEM_DEVICE, own, 0x1000, 0);
	memory(GMT_MEM_ALLOC, GMT_MEM_DEVICE, own, 0x1000, 99);
	assert_int_equal(m.devices[0].retries, 0);
	block(GMT_BLOCK_ALLOC, 0, 0x1000, 99);
	assert_int_equal(m.devices[0].retries, 1);
	/* in vain */
	memory(GMT_MEM_FAIL, GMT_MEM_DEVICE, own, 0, 99);
	memory(GMT_MEM_FREE, GMT_MEM_DEVICE, own, 0x1000, 0);
	memory(GMT_MEM_FAIL, GMT_MEM_DEVICE, own, 0, 99);
	block(GMT_BLOCK_OOM, 0, 0, 99);
	block(GMT_BLOCK_ALLOC, 0, 0x2000, 9);
	/* nothing was given back */
	memory(GMT_MEM_FAIL, GMT_MEM_DEVICE, own, 0, 99);
	block(GMT_BLOCK_ALLOC, 0, 0x3000, 9);
	assert_int_equal(m.devices[0].retries, 1);
	assert_int_equal(model_ooms(&m.devices[0]), 1);
	model_free(&m);
}

/* After the events were fed. */
static struct moment *at(uint64_t when)
{
	static struct moment mo;

	mo = (struct moment){ .seq = when, .framework = true };
	model_settle(&m);
	model_take(&m, &mo);
	return &mo;
}

/* Allocations 1 to 4 with a free between: after each event exactly these are alive. */
static void moments(void **state)
{
	static const uint64_t bytes[] = { 10, 30, 20, 60 };
	static const size_t counts[] = { 1, 2, 1, 2 };

	(void)state;
	for (uint64_t when = 1; when <= 4; when++) {
		struct moment *mo;

		fresh();
		block(GMT_BLOCK_ALLOC, 0, 0x1000, 10);
		block(GMT_BLOCK_ALLOC, 0, 0x2000, 20);
		block(GMT_BLOCK_FREE, 0, 0x1000, 10);
		block(GMT_BLOCK_ALLOC, 0, 0x1000, 40);
		mo = at(when);
		assert_int_equal(mo->bytes, bytes[when - 1]);
		assert_int_equal(mo->count, counts[when - 1]);
		assert_int_equal(mo->time_ns, when * 10);
		for (size_t i = 1; i < mo->count; i++)
			assert_true(mo->blocks[i].addr > mo->blocks[i - 1].addr);
		moment_free(mo);
		model_free(&m);
	}
}

static void tag(unsigned kind, uint64_t addr, uint64_t arg0)
{
	feed((struct gmt_event){ .kind = kind, .addr = addr, .arg0 = arg0 });
}

static uint32_t name_of(const char *s)
{
	static uint32_t id;
	struct gmt_def d = { GMT_DEF_STRING, ++id, strlen(s), s };

	defs_add(&defs, &d);
	return id;
}

static void range(unsigned kind, uint64_t number, uint32_t name)
{
	feed((struct gmt_event){ .kind = kind, .arg0 = number, .name = name, .thread = 1 });
}

static const char *class_of(const struct block *b)
{
	struct classifier *c = classifier_new(&m, NULL);
	const char *name = categories[classify(c, b).category].name;

	classifier_free(c);
	return name;
}

static const char *class_at(const struct moment *mo, uint64_t addr)
{
	for (size_t i = 0; i < mo->count; i++)
		if (mo->blocks[i].addr == addr)
			return class_of(&mo->blocks[i]);
	return "(not alive)";
}

/* Tags that come after the moment count, but saved-for-backward is a fact of the moment. */
static void tags(void **state)
{
	uint32_t step = name_of("Optimizer.step#AdamW.step"),
		 other = name_of("Optimizer.zero_grad");
	struct moment *mo;

	(void)state;
	fresh();
	for (uint64_t addr = 0x1000; addr <= 0x6000; addr += 0x1000)
		block(GMT_BLOCK_ALLOC, 0, addr, 0x800); /* events 1 to 6 */
	tag(GMT_TAG_SAVED, 0x2010, 0x51);
	tag(GMT_TAG_SAVED, 0x3010, 0x52);
	tag(GMT_TAG_RELEASED, 0, 0x52);
	range(GMT_RANGE_BEGIN, 1, other);
	range(GMT_RANGE_END, 1, other);
	range(GMT_RANGE_BEGIN, 2, step);
	feed((struct gmt_event){ .kind = GMT_BLOCK_ALLOC, .addr = 0x7000, .size = 8, .thread = 1 });
	feed((struct gmt_event){ .kind = GMT_BLOCK_ALLOC, .addr = 0x8000, .size = 8, .thread = 1 });
	block(GMT_BLOCK_FREE, 0, 0x8000, 8); /* 15: after the moment */
	range(GMT_RANGE_END, 2, step);
	tag(GMT_TAG_LEAF, 0x17ff, 0x61);
	tag(GMT_TAG_GRAD, 0x4000, 0x61);
	tag(GMT_TAG_LEAF, 0x1800, 0x62); /* just behind the first block: nobody's */
	tag(GMT_TAG_SAVED, 0x5000, 0x53);
	mo = at(14);
	assert_true(mo->taken);
	assert_string_equal(class_at(mo, 0x1000), "parameters");
	assert_string_equal(class_at(mo, 0x2000), "activations");
	assert_string_equal(class_at(mo, 0x3000), "unknown");
	assert_string_equal(class_at(mo, 0x4000), "gradients");
	assert_string_equal(class_at(mo, 0x5000), "unknown");
	assert_string_equal(class_at(mo, 0x7000), "optimizer_state");
	assert_string_equal(class_at(mo, 0x8000), "optimizer_temporaries");
	moment_free(mo);
	model_free(&m);
	defs_free(&defs);
}

/* A tensor is let go with as many releases as saves; a new one at an old one's place is saved once.
 */
static void saved_by_two_nodes(void **state)
{
	static const char *const classes[] = { "activations", "activations", "unknown" };
	struct moment *mo;

	(void)state;
	fresh();
	block(GMT_BLOCK_ALLOC, 0, 0x1000, 8);
	block(GMT_BLOCK_ALLOC, 0, 0x2000, 8);
	tag(GMT_TAG_SAVED, 0x1000, 0x51);
	tag(GMT_TAG_SAVED, 0x1000, 0x51);
	tag(GMT_TAG_SAVED, 0x2000, 0x51); /* the release of the first was not seen */
	tag(GMT_TAG_SAVED, 0x2000, 0x51);
	tag(GMT_TAG_RELEASED, 0, 0x51);
	tag(GMT_TAG_RELEASED, 0, 0x51);
	mo = at(8);
	assert_string_equal(class_at(mo, 0x2000), classes[2]);
	moment_free(mo);
	mo = at(7);
	assert_string_equal(class_at(mo, 0x2000), classes[1]);
	assert_string_equal(class_at(mo, 0x1000), classes[2]);
	moment_free(mo);
	mo = at(4);
	assert_string_equal(class_at(mo, 0x1000), classes[0]);
	moment_free(mo);
	model_free(&m);
	defs_free(&defs);
}

/* A SavedVariable of a block's earlier life lets go without harm to the later one. */
static void saved_belongs_to_one_life(void **state)
{
	struct moment *mo;

	(void)state;
	fresh();
	block(GMT_BLOCK_ALLOC, 0, 0x1000, 8);
	tag(GMT_TAG_SAVED, 0x1000, 0x51);
	block(GMT_BLOCK_FREE, 0, 0x1000, 8);
	block(GMT_BLOCK_ALLOC, 0, 0x1000, 8);
	tag(GMT_TAG_SAVED, 0x1000, 0x52);
	tag(GMT_TAG_RELEASED, 0, 0x51);
	tag(GMT_TAG_RELEASED, 0, 0x99);
	mo = at(7);
	assert_string_equal(class_at(mo, 0x1000), "activations");
	moment_free(mo);
	model_free(&m);
}

static void largest_hole(void **state)
{
	struct moment *mo;

	(void)state;
	fresh();
	memory(GMT_MEM_ALLOC, GMT_MEM_DEVICE, GMT_FLAG_FRAMEWORK, 0x10000, 0x1000);
	memory(GMT_MEM_ALLOC, GMT_MEM_DEVICE, 0, 0x90000, 0x8000); /* not the cache's */
	block(GMT_BLOCK_ALLOC, 0, 0x10200, 0x200);
	block(GMT_BLOCK_ALLOC, 0, 0x10400, 0x200);
	block(GMT_BLOCK_ALLOC, 0, 0x10e00, 0x100);
	mo = at(5);
	assert_int_equal(room_at(&m, mo, NULL).hole, 0x800);
	moment_free(mo);
	model_free(&m);
}

/* Whatever the events say, the replay ends. */
static void anything_goes(void **state)
{
	struct chance c = { 99 };
	struct moment *mo;

	(void)state;
	fresh();
	for (int i = 0; i < 200000; i++) {
		struct gmt_event e = chance_event(&c);

		e.device = (int)chance_below(&c, 4) - 1;
		e.thread &= 7;
		if (chance_below(&c, 2))
			e.addr = UINT64_MAX - chance_below(&c, 3);
		feed(e);
	}
	mo = at(100000);
	(void)room_at(&m, mo, NULL);
	for (size_t i = 0; i < mo->count; i++)
		class_of(&mo->blocks[i]);
	moment_free(mo);
	model_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peaks_by_chance),
		cmocka_unit_test(devices_are_apart),
		cmocka_unit_test(address_used_again),
		cmocka_unit_test(driver_without_framework),
		cmocka_unit_test(expandable_segments),
		cmocka_unit_test(reserved_is_what_the_framework_says),
		cmocka_unit_test(async_backend),
		cmocka_unit_test(retries),
		cmocka_unit_test(moments),
		cmocka_unit_test(tags),
		cmocka_unit_test(saved_by_two_nodes),
		cmocka_unit_test(saved_belongs_to_one_life),
		cmocka_unit_test(largest_hole),
		cmocka_unit_test(anything_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
