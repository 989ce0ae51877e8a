/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs that wait for a value which is not computed. Such a program gives the device the same
 * work again and again and reads back the same bytes. If that goes on for seconds, a notice
 * (notices.c) says so, and `run` prints it. Any thread may call; a lock keeps the latest reads.
 */
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "contents.h"
#include "notices.h"

#define CYCLE_MOST  16 /* reads in one turn of the loop */
#define READS_LEAST 1000
#define NS_LEAST    5000000000ull
#define HASHED_MOST 4096 /* bytes of a copy */
#define MULTIPLIER  0x9e3779b97f4a7c15ull

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t given; /* hash of the work since the latest read, whatever its order */
static uint64_t latest[CYCLE_MOST];
static unsigned int next, repeats;
static uint64_t since;

void progress_work(uint64_t what)
{
	__atomic_fetch_add(&given, (what ^ what >> 29) * MULTIPLIER | 1, __ATOMIC_RELAXED);
}

void progress_data(const void *data, size_t bytes)
{
	uint64_t hash = bytes, word;

	for (size_t i = 0; i + sizeof(word) <= bytes && i < HASHED_MOST; i += sizeof(word)) {
		memcpy(&word, (const char *)data + i, sizeof(word));
		hash = (hash ^ word ^ hash >> 31) * MULTIPLIER;
	}
	word = 0;
	memcpy(&word, (const char *)data + bytes / sizeof(word) * sizeof(word),
	       bytes < HASHED_MOST ? bytes % sizeof(word) : 0);
	progress_work(hash ^ word);
}

/* Not by a function of the C library, because those use the simulated clock. */
static uint64_t real_ns(void)
{
	struct timespec t = { 0 };

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool was_read(uint64_t sign)
{
	for (int i = 0; i < CYCLE_MOST; i++)
		if (latest[i] == sign)
			return true;
	return false;
}

bool progress_none(const void *src)
{
	static bool said;
	char process[16];
	uint64_t sign;
	bool none;

	pthread_mutex_lock(&lock);
	sign = __atomic_exchange_n(&given, 0, __ATOMIC_RELAXED) ^ (uintptr_t)src;
	if (was_read(sign)) {
		repeats++;
	} else {
		latest[next++ % CYCLE_MOST] = sign;
		repeats = 0;
		since = real_ns();
	}
	none = repeats >= READS_LEAST && real_ns() - since >= NS_LEAST;
	pthread_mutex_unlock(&lock);
	snprintf(process, sizeof(process), "%d", (int)getpid());
	if (none)
		note_once(&said, "repeats", process);
	return none;
}
