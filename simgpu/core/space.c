/* SPDX-License-Identifier: Apache-2.0
 *
 * The address space of device memory, without pages behind it, and a count of bytes in use on each
 * device.
 *
 * All devices' addresses lie in one PROT_NONE reservation. Each device has a stretch of several
 * times its memory, so that fragmented addresses never fail an allocation for which there is memory
 * (a real device maps 2 MiB pages anywhere). One more stretch serves address reservations (vmm.c).
 * Allocations take whole pages of it, or spans of pages cut into pieces (arenas). Any thread; one
 * lock.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "contents.h"
#include "devices.h"
#include "memory.h"
#include "processes.h"
#include "usage.h"

#define VMM_BYTES ((size_t)8 << 40)

struct device_memory {
	struct slots pages;
	struct arena **arenas; /* by page; NULL where an allocation owns whole pages */
	uint32_t *owners;      /* by an allocation's first page: id of a context, or 0 */
	size_t used;
};

pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;
static struct device_memory devices[SIM_MAX_DEVICES];
static uintptr_t space; /* the reservation */
static size_t stretch, space_bytes, vmm_bytes;

static void *lazy(size_t bytes)
{
	void *m = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return m == MAP_FAILED ? NULL : m;
}

/* Reserves as many addresses as the machine allows: first the reservations' stretch shrinks, then
 * the devices'. */
static bool reserve(int count)
{
	const size_t least = (sim_card()->memory + SIM_PAGE) & ~(SIM_PAGE - 1);

	stretch = 4 * least;
	for (vmm_bytes = VMM_BYTES; vmm_bytes >= SIM_PAGE; vmm_bytes /= 2) {
		size_t bytes = count * stretch + vmm_bytes + SIM_PAGE;
		void *m = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			       -1, 0);

		if (m != MAP_FAILED) {
			space = ((uintptr_t)m + SIM_PAGE - 1) & ~(SIM_PAGE - 1);
			space_bytes = bytes - SIM_PAGE;
			madvise(m, bytes, MADV_DONTDUMP);
			return true;
		}
		if (vmm_bytes / 2 < 2 * least && stretch > least) {
			stretch /= 2;
			vmm_bytes *= 2;
		}
	}
	return false;
}

int memory_init(void)
{
	int count = sim_device_count();

	if (space)
		return SIM_OK;
	if (!reserve(count))
		return SIM_NOMEM;
	usage_open();
	for (int i = 0; i < count; i++) {
		devices[i].arenas = lazy(stretch / SIM_PAGE * sizeof(struct arena *));
		devices[i].owners = lazy(stretch / SIM_PAGE * sizeof(uint32_t));
		if (!devices[i].arenas || !devices[i].owners ||
		    !slots_init(&devices[i].pages, stretch / SIM_PAGE))
			return SIM_NOMEM;
	}
	return SIM_OK;
}

uintptr_t memory_space(size_t *bytes)
{
	*bytes = space_bytes;
	return space;
}

uintptr_t vmm_base(void)
{
	return space + sim_device_count() * stretch;
}

size_t vmm_pages(void)
{
	return space ? vmm_bytes / SIM_PAGE : 0;
}

/* ---- capacity ---- */

bool memory_charge(int device, size_t bytes)
{
	const size_t room = sim_card()->memory - sim_card()->taken;
	struct device_memory *m = &devices[device];
	bool held = bytes <= room && usage_hold(device_physical(device), m->used + bytes, room);

	if (!held && bytes <= room && host_evict(device, 0))
		held = usage_hold(device_physical(device), m->used + bytes, room);
	if (!held) {
		processes_hold(device_physical(device), m->used);
		usage_refused();
		return false;
	}
	m->used += bytes;
	return true;
}

void memory_uncharge(int device, size_t bytes)
{
	struct device_memory *m = &devices[device];

	m->used -= bytes < m->used ? bytes : m->used;
	processes_hold(device_physical(device), m->used);
}

size_t memory_in_use(int physical)
{
	return sim_card()->taken + processes_held(physical);
}

void sim_mem_info(int device, size_t *free_bytes, size_t *total)
{
	size_t used = memory_in_use(device_physical(device));

	*total = sim_card()->memory;
	*free_bytes = *total - (used < *total ? used : *total);
}

/* ---- whole pages ---- */

static int device_at(uintptr_t addr)
{
	return (int)((addr - space) / stretch);
}

static size_t page_of(uintptr_t addr)
{
	return (addr - space) % stretch / SIM_PAGE;
}

uintptr_t pages_take(int device, size_t pages, uint64_t bytes, uint32_t owner)
{
	size_t at;

	if (!memory_charge(device, pages * SIM_PAGE))
		return 0;
	at = slots_take(&devices[device].pages, pages, 1, bytes);
	if (at == SLOTS_NONE) {
		memory_uncharge(device, pages * SIM_PAGE);
		return 0;
	}
	devices[device].owners[at] = owner;
	return space + device * stretch + at * SIM_PAGE;
}

void pages_give(uintptr_t base)
{
	int device = device_at(base);

	devices[device].owners[page_of(base)] = 0;
	memory_uncharge(device, slots_give(&devices[device].pages, page_of(base)) * SIM_PAGE);
}

/* ---- arenas ---- */

struct arena *arena_new(int device, size_t pages, size_t piece, void *pool, uint32_t owner)
{
	struct arena *a = calloc(1, sizeof(*a));
	size_t first;

	if (!a || !slots_init(&a->slots, pages * (SIM_PAGE / piece)))
		goto fail;
	a->base = pages_take(device, pages, pages * SIM_PAGE, owner);
	if (!a->base)
		goto fail;
	a->pages = pages;
	a->piece = piece;
	a->device = device;
	a->owner = owner;
	a->pool = pool;
	first = page_of(a->base);
	for (size_t i = 0; i < pages; i++)
		devices[device].arenas[first + i] = a;
	return a;
fail:
	if (a)
		slots_done(&a->slots);
	free(a);
	return NULL;
}

void arena_drop(struct arena *a)
{
	size_t first = page_of(a->base);

	memset(&devices[a->device].arenas[first], 0, a->pages * sizeof(struct arena *));
	pages_give(a->base);
	slots_done(&a->slots);
	free(a);
}

uintptr_t arena_take(struct arena *a, size_t bytes)
{
	size_t at = slots_take(&a->slots, (bytes + a->piece - 1) / a->piece, 1, bytes);

	return at == SLOTS_NONE ? 0 : a->base + at * a->piece;
}

size_t arena_give(struct arena *a, uintptr_t addr)
{
	return slots_give(&a->slots, (addr - a->base) / a->piece) * a->piece;
}

/* ---- blocks ---- */

static bool arena_block(struct arena *a, uintptr_t addr, struct block *out)
{
	size_t at = slots_find(&a->slots, (addr - a->base) / a->piece);

	if (at == SLOTS_NONE)
		return false;
	*out = (struct block){ a->base + at * a->piece, a->slots.bytes[at], a->device, a->owner,
			       a };
	return addr < out->base + out->bytes;
}

bool space_block(uintptr_t addr, struct block *out)
{
	struct device_memory *m = &devices[device_at(addr)];
	size_t page = page_of(addr);

	if (m->arenas[page])
		return arena_block(m->arenas[page], addr, out);
	page = slots_find(&m->pages, page);
	if (page == SLOTS_NONE)
		return false;
	*out = (struct block){ space + device_at(addr) * stretch + page * SIM_PAGE,
			       m->pages.bytes[page], device_at(addr), m->owners[page], NULL };
	return addr < out->base + out->bytes;
}

void space_empty(int device, uint32_t owner)
{
	struct device_memory *m = &devices[device];

	for (size_t i = 0; i < m->pages.n && m->pages.free < m->pages.n; i++)
		if (m->owners[i] == owner && !m->arenas[i]) {
			uintptr_t base = space + device * stretch + i * SIM_PAGE;

			contents_drop(base, m->pages.count[i] * SIM_PAGE);
			pages_give(base);
		}
}
