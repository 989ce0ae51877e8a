/* SPDX-License-Identifier: Apache-2.0
 *
 * Peak use of each device. SIMGPU_USAGE names an existing file whose numbers are kept up to date,
 * so that they are right however the program ends. Processes that have the same file share the
 * devices. Any thread; without that setting nothing is done.
 *
 * The file has 64-bit numbers in native byte order: a magic number, the card's memory, the size of
 * a context, the number of failed allocations, the number of queries of free memory before the
 * first failure (after one a framework queries it for its message), the peak of each device, NCCL's
 * part of it (simulated, least, most), a number that changes with each piece of work on a device,
 * the largest workspace of a convolution (simulated, most, and 1 if some were not measured on such
 * a card), the number of loaded modules of compiled kernels, and the table of processes.c. Peaks
 * are those of all processes together.
 */
#include "usage.h"
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core.h"
#include "processes.h"

#define MAGIC 0x3145474153554d53ull /* "SMUSAGE1" */

struct usage {
	uint64_t magic, memory, context, refused, asked;
	uint64_t peak[SIM_MAX_DEVICES];
	uint64_t nccl[3];
	uint64_t work;
	uint64_t convolution[3];
	uint64_t modules;
};

static struct usage *usage;

static struct usage *map_file(const char *path)
{
	const size_t bytes = sizeof(*usage) + processes_bytes();
	int fd = path && *path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *p;

	if (fd < 0)
		return NULL;
	p = ftruncate(fd, (off_t)bytes)
		    ? MAP_FAILED
		    : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return p == MAP_FAILED ? NULL : p;
}

/* Frees the part of the program that became this one by exec. */
static __attribute__((constructor)) void begin(void)
{
	usage = map_file(getenv("SIMGPU_USAGE"));
	if (usage)
		processes_begin(usage + 1);
}

void usage_open(void)
{
	if (!usage)
		return;
	usage->memory = sim_card()->memory;
	usage->context = sim_card()->context;
	usage->magic = MAGIC;
	processes_open();
}

static void raise_to(uint64_t *most, uint64_t to)
{
	uint64_t before = __atomic_load_n(most, __ATOMIC_RELAXED);

	while (to > before && !__atomic_compare_exchange_n(most, &before, to, true,
							   __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

bool usage_hold(int device, uint64_t used, uint64_t room)
{
	uint64_t most = usage ? usage->peak[device] : 0;

	if (used > room)
		return false;
	processes_hold(device, used);
	most = most < used ? used : most;
	used += processes_others(device, (most < room ? most : room) - used);
	if (used > room)
		return false;
	if (usage)
		raise_to(&usage->peak[device], used);
	return true;
}

void usage_nccl(uint64_t taken, uint64_t least, uint64_t most)
{
	const uint64_t now[] = { taken, least, most };

	for (int i = 0; usage && i < 3; i++)
		raise_to(&usage->nccl[i], now[i]);
}

void usage_convolution(uint64_t taken, uint64_t most, bool measured)
{
	const uint64_t now[] = { taken, most, !measured };

	for (int i = 0; usage && i < 3; i++)
		raise_to(&usage->convolution[i], now[i]);
}

void usage_module(void)
{
	if (usage)
		__atomic_add_fetch(&usage->modules, 1, __ATOMIC_RELAXED);
}

/* Counts without an atomic add, which would cost more. Two calls at once may count as one. */
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
