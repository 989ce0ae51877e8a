/* SPDX-License-Identifier: Apache-2.0
 *
 * How much of each device was ever used: SIMGPU_USAGE names a file that is there, and its numbers
 * are kept up to date in it, so that they are right however the program ends. Of several processes
 * the most counts. Any thread; without that setting nothing is done.
 *
 * The file: 64-bit numbers of this machine. The first says what it is, then come the card's memory,
 * what a context takes, how often memory was refused, how often a program asked what is free before
 * that (afterwards a framework asks for its message), and the peak of each device.
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

void usage_peak(int device, size_t used)
{
	uint64_t before;

	if (!usage)
		return;
	before = __atomic_load_n(&usage->peak[device], __ATOMIC_RELAXED);
	while (used > before &&
	       !__atomic_compare_exchange_n(&usage->peak[device], &before, used, true,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
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
