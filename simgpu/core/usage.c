/* SPDX-License-Identifier: Apache-2.0
 *
 * Peak use of each device. SIMGPU_USAGE names an existing file whose numbers are kept up to date,
 * so that they are right however the program ends. With several processes the highest numbers
 * count. Any thread; without that setting nothing is done.
 *
 * The file has 64-bit numbers of this machine: a magic number, the card's memory, the size of a
 * context, the number of failed allocations, the number of queries for free memory before the first
 * of them (afterwards a framework queries it for its message), the peak of each device, and NCCL's
 * part of it: simulated, least, most; then a number that changes with each piece of work on a
 * device.
 */
#include "usage.h"
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core.h"

#define MAGIC 0x3145474153554d53ull /* "SMUSAGE1" */

struct usage {
	uint64_t magic, memory, context, refused, asked;
	uint64_t peak[SIM_MAX_DEVICES];
	uint64_t nccl[3];
	uint64_t work;
};

static struct usage *usage;

void usage_open(void)
{
	const char *path = getenv("SIMGPU_USAGE");
	int fd = path && *path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *p;

	if (fd < 0)
		return;
	p = ftruncate(fd, sizeof(*usage))
		    ? MAP_FAILED
		    : mmap(NULL, sizeof(*usage), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return;
	usage = p;
	usage->memory = sim_card()->memory;
	usage->context = sim_card()->context;
	usage->magic = MAGIC;
}

static void raise_to(uint64_t *most, uint64_t to)
{
	uint64_t before = __atomic_load_n(most, __ATOMIC_RELAXED);

	while (to > before && !__atomic_compare_exchange_n(most, &before, to, true,
							   __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

void usage_peak(int device, size_t used)
{
	if (usage)
		raise_to(&usage->peak[device], used);
}

void usage_nccl(uint64_t taken, uint64_t least, uint64_t most)
{
	const uint64_t now[] = { taken, least, most };

	for (int i = 0; usage && i < 3; i++)
		raise_to(&usage->nccl[i], now[i]);
}

/* Counts without an atomic add, which costs more: of two threads at once one may be missed. */
void usage_work(void)
{
	if (usage)
		__atomic_store_n(&usage->work, usage->work + 1, __ATOMIC_RELAXED);
}

void usage_refused(void)
{
	if (usage)
		__atomic_add_fetch(&usage->refused, 1, __ATOMIC_RELAXED);
}

void usage_asked(void)
{
	if (usage && !__atomic_load_n(&usage->refused, __ATOMIC_RELAXED))
		__atomic_add_fetch(&usage->asked, 1, __ATOMIC_RELAXED);
}
