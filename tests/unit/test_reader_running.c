/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading while the process runs: its rings and its file change under the reader's hands.
 *
 * links: tests/unit/recordings.c
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "recordings.h"

#define PID 77

#define TOTAL 300000u

struct running {
	uint8_t *map;
	int fd;
	uint32_t produced, stop;
};

static struct gmt_ring *running_ring(struct running *p)
{
	return (struct gmt_ring *)(p->map + GMT_LIVE_PAGE);
}

static void *produce(void *arg)
{
	struct running *p = arg;

	for (uint32_t i = 1; i <= TOTAL && !__atomic_load_n(&p->stop, __ATOMIC_RELAXED);) {
		struct gmt_event e = plain_event(i);

		if (gmt_ring_push(running_ring(p), &e))
			__atomic_store_n(&p->produced, i++, __ATOMIC_RELEASE);
		else
			usleep(100);
	}
	return NULL;
}

static void *drain(void *arg)
{
	static uint8_t buf[GMT_DEF_MAX];
	struct running *p = arg;
	struct gmt_writer *w = open_writer(p->fd, PID);
	uint64_t pos = 0;

	while (!__atomic_load_n(&p->stop, __ATOMIC_RELAXED)) {
		struct gmt_ring_item item;

		while (gmt_ring_peek(running_ring(p), &pos, &item, buf) == 1)
			gmt_writer_event(w, &item.event);
		gmt_writer_flush(w);
		gmt_ring_release(running_ring(p), pos);
		usleep(500);
	}
	close_writer(w);
	return NULL;
}

/* Read while it grows: always a whole sequence from 1, at least up to what was there before. */
static void running_process(void **state)
{
	struct bytes live = new_live(PID, 1);
	struct running p = { 0 };
	char recording[128], live_path[140];
	pthread_t threads[2];
	int live_fd;

	(void)state;
	snprintf(recording, sizeof(recording), "%s", scratch_path("running.gmt"));
	snprintf(live_path, sizeof(live_path), "%s.live", recording);
	write_file(live_path, live.data, live.len);
	live_fd = open(live_path, O_RDWR);
	p.map = mmap(NULL, live.len, PROT_READ | PROT_WRITE, MAP_SHARED, live_fd, 0);
	assert_ptr_not_equal(p.map, MAP_FAILED);
	p.fd = open(recording, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_int_equal(pthread_create(&threads[0], NULL, produce, &p), 0);
	assert_int_equal(pthread_create(&threads[1], NULL, drain, &p), 0);
	for (int round = 0; round < 30; round++) {
		uint32_t before = __atomic_load_n(&p.produced, __ATOMIC_ACQUIRE);
		struct heard h;

		if (before == 0 || gmt_ring_used(running_ring(&p)) == before) {
			usleep(1000); /* the file has no header yet */
			continue;
		}
		h = hear(recording);
		assert_true(h.events_used >= before);
		for (size_t i = 0; i < h.events_used; i++) {
			struct gmt_event want = plain_event(i + 1);

			assert_true(same_event(&h.events[i], &want));
		}
		heard_free(&h);
	}
	__atomic_store_n(&p.stop, 1, __ATOMIC_RELAXED);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	munmap(p.map, live.len);
	close(live_fd);
	close(p.fd);
	free(live.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(running_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
