/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ranks exchange: the arithmetic of reductions, buffers as they travel, and work that waits
 * for others, of ranks that are threads here.
 *
 * links: simgpu/libraries/lib_nccl_numbers.c simgpu/libraries/lib_nccl_payload.c
 * links: simgpu/core/
 * links: simgpu/libraries/lib_nccl_exchange.c simgpu/libraries/lib_nccl_node.c
 * links: simgpu/libraries/lib_nccl_id.c
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>
#include <cmocka.h>
#include "../../simgpu/libraries/lib_nccl.h"

static int start(void **state)
{
	(void)state;
	setenv("SIMGPU_CARD", "small=256MiB", 1);
	setenv("SIMGPU_COUNT", "4", 1);
	return sim_enter() || sim_set_device(0);
}

/* ---- numbers ---- */

static void halves(void **state)
{
	static const struct {
		int type;
		uint16_t a, b, sum, product;
	} cases[] = {
		{ 6, 0x3c00, 0x3c00, 0x4000, 0x3c00 }, /* 1 + 1, 1 * 1 */
		{ 6, 0x7bff, 0x7bff, 0x7c00, 0x7c00 }, /* the largest: infinite */
		{ 6, 0x0001, 0x0001, 0x0002, 0x0000 }, /* the smallest */
		{ 6, 0x03ff, 0x0001, 0x0400, 0x0000 }, /* the smallest that is normal */
		{ 6, 0x3c00, 0x1000, 0x3c00, 0x1000 }, /* a tie goes to the even one */
		{ 6, 0x3c01, 0x1000, 0x3c02, 0x1001 },
		{ 6, 0x3bff, 0x1000, 0x3c00, 0x0fff }, /* over a power of two */
		{ 6, 0xbc00, 0x3c00, 0x0000, 0xbc00 },
		{ 9, 0x3f80, 0x3f80, 0x4000, 0x3f80 },
		{ 9, 0x3f80, 0x3b80, 0x3f80, 0x3b80 },
		{ 9, 0x3f81, 0x3b80, 0x3f82, 0x3b81 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned char known[2] = { CONTENTS_KNOWN, CONTENTS_KNOWN }, all[2];
		uint16_t total = cases[i].a;

		memcpy(all, known, 2);
		nccl_combine(&total, all, &cases[i].b, known, 1, cases[i].type, NCCL_SUM);
		assert_int_equal(total, cases[i].sum);
		total = cases[i].a;
		nccl_combine(&total, all, &cases[i].b, known, 1, cases[i].type, NCCL_PROD);
		assert_int_equal(total, cases[i].product);
	}
}

static void whole_numbers(void **state)
{
	int8_t a[2] = { 127, -128 };
	const int8_t b[2] = { 1, -1 };
	uint64_t large = UINT64_MAX, two = 2;
	unsigned char known[8], all[8];

	(void)state;
	memset(known, CONTENTS_KNOWN, 8);
	memset(all, CONTENTS_KNOWN, 8);
	nccl_combine(a, all, b, known, 2, 0, NCCL_SUM);
	assert_int_equal(a[0], -128);
	assert_int_equal(a[1], 127);
	nccl_combine(&large, all, &two, known, 1, 5, NCCL_MAX);
	assert_true(large == UINT64_MAX);
	nccl_combine(&large, all, &two, known, 1, 5, NCCL_MIN);
	assert_true(large == 2);
	known[0] = CONTENTS_UNKNOWN;
	nccl_combine(&large, all, &two, known, 1, 5, NCCL_SUM);
	assert_int_equal(all[0], CONTENTS_UNKNOWN);
	assert_int_equal(all[1], CONTENTS_KNOWN);
}

/* ---- ranks that are threads ---- */

#define RANKS 3
#define COUNT 700

struct rank {
	struct nccl_id *id;
	struct nccl_comm comm;
	float *buffer;
	pthread_t thread;
};

static void join(struct rank *r, int rank)
{
	char why[96];

	r->comm.ranks = RANKS;
	r->comm.rank = r->comm.device = rank;
	assert_int_equal(nccl_node_join(&r->comm.node, r->id, RANKS, rank, rank), NCCL_OK);
	assert_int_equal(nccl_node_meet(r->comm.node, why, sizeof(why)), NCCL_OK);
}

static void *of_a_rank(void *arg)
{
	struct rank *r = arg;
	int rank = r->comm.rank;
	float mine[COUNT];

	join(r, rank);
	sim_set_device(rank);
	for (int i = 0; i < COUNT; i++)
		mine[i] = (float)(i + rank);
	sim_copy(r->buffer, mine, sizeof(mine));
	for (int i = 0; i < 100; i++)
		nccl_exchange(NCCL_REDUCE, &(struct nccl_call){ .comm = &r->comm,
								.from = r->buffer,
								.to = r->buffer,
								.count = COUNT,
								.type = 7,
								.op = i ? NCCL_AVG : NCCL_SUM,
								.root = -1 });
	sim_copy(mine, r->buffer, sizeof(mine));
	for (int i = 0; i < COUNT; i++)
		if (mine[i] < (float)(3 * i) + 2.99f ||
		    mine[i] > (float)(3 * i) + 3.01f + (float)i / 1000)
			return r;
	nccl_end_exchanges(&r->comm);
	nccl_node_leave(r->comm.node);
	return NULL;
}

static void sums_of_threads(void **state)
{
	struct rank ranks[RANKS] = { 0 };
	struct nccl_id id;
	void *wrong;

	(void)state;
	assert_int_equal(nccl_id_make(&id), NCCL_OK);
	for (int i = 0; i < RANKS; i++) {
		ranks[i].id = &id;
		ranks[i].comm.rank = i;
		assert_int_equal(sim_alloc((void **)&ranks[i].buffer, COUNT * sizeof(float)), 0);
		pthread_create(&ranks[i].thread, NULL, of_a_rank, &ranks[i]);
	}
	for (int i = 0; i < RANKS; i++) {
		pthread_join(ranks[i].thread, &wrong);
		assert_null(wrong);
		sim_free(ranks[i].buffer);
	}
	assert_false(pending_any());
}

/* ---- what is written meanwhile stays; a rank that dies ---- */

static void later_writes_stay(void **state)
{
	struct nccl_id id;
	struct nccl_comm a = { .ranks = 2, .rank = 0, .device = 0 };
	struct nccl_comm b = { .ranks = 2, .rank = 1, .device = 1 };
	int sent[300], got[300], *to, *from, seven = 7;

	(void)state;
	for (int i = 0; i < 300; i++)
		sent[i] = i + 1;
	nccl_id_make(&id);
	assert_int_equal(nccl_node_join(&a.node, &id, 2, 0, 0), NCCL_OK);
	assert_int_equal(nccl_node_join(&b.node, &id, 2, 1, 1), NCCL_OK);
	sim_alloc((void **)&to, sizeof(sent));
	sim_alloc((void **)&from, sizeof(sent));
	sim_copy(from, sent, sizeof(sent));
	assert_int_equal(nccl_receive(&a, to, sizeof(sent), 1, NULL), NCCL_OK);
	assert_true(pending_any());
	assert_int_equal(stream_query(NULL), SIM_NOT_READY);
	sim_copy(to + 10, &seven, sizeof(seven)); /* comes behind it on the stream */
	nccl_send(&b, from, sizeof(sent), 0);
	assert_int_equal(stream_sync(NULL), SIM_OK);
	sim_copy(got, to, sizeof(got));
	sent[10] = 7;
	assert_memory_equal(got, sent, sizeof(sent));
	nccl_node_leave(b.node);
	nccl_receive(&a, to, sizeof(sent), 1, NULL);
	usleep(150000);
	assert_int_equal(stream_query(NULL), SIM_NOT_READY);
	assert_int_equal(a.error, NCCL_REMOTE_ERROR);
	nccl_end_exchanges(&a);
	assert_int_equal(stream_query(NULL), SIM_OK);
	nccl_node_leave(a.node);
	nccl_id_drop(&id);
	sim_free(to);
	sim_free(from);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(halves),
		cmocka_unit_test(whole_numbers),
		cmocka_unit_test(sums_of_threads),
		cmocka_unit_test(later_writes_stay),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
