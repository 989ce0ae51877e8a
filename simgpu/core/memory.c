/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocations of device memory. Those of up to 1 MiB share pages of 2 MiB, as with the real driver;
 * larger ones take whole pages. Blocks of pools (pools.c) and mappings (vmm.c) are found here too.
 * Any thread; under memory_lock.
 */
#include "contents.h"
#include "devices.h"
#include "memory.h"

#define PIECE	   ((size_t)512)
#define SMALL_MOST (SIM_PAGE / 2)

static struct arena *small[SIM_MAX_DEVICES]; /* pages shared by small allocations of a context */

bool block_find(uintptr_t addr, struct block *out)
{
	if (!sim_is_device_ptr((void *)addr))
		return false;
	return addr >= vmm_base() ? vmm_mapping(addr, out) : space_block(addr, out);
}

static void link_small(struct arena *a)
{
	a->next = small[a->device];
	if (a->next)
		a->next->prev = a;
	small[a->device] = a;
}

static void unlink_small(struct arena *a)
{
	if (a->prev)
		a->prev->next = a->next;
	else
		small[a->device] = a->next;
	if (a->next)
		a->next->prev = a->prev;
}

static uintptr_t alloc_small(int device, size_t bytes, uint32_t owner)
{
	struct arena *a;

	for (a = small[device]; a; a = a->next) {
		uintptr_t addr = a->owner == owner ? arena_take(a, bytes) : 0;

		if (addr)
			return addr;
	}
	a = arena_new(device, 1, PIECE, NULL, owner);
	if (!a)
		return 0;
	link_small(a);
	return arena_take(a, bytes);
}

static uintptr_t device_take(int device, size_t bytes)
{
	uint32_t owner = ctx_owner(device);

	if (bytes <= SMALL_MOST)
		return alloc_small(device, bytes, owner);
	return pages_take(device, (bytes + SIM_PAGE - 1) / SIM_PAGE, bytes, owner);
}

int memory_alloc(int device, uintptr_t *out, size_t bytes)
{
	uintptr_t addr;

	if (!bytes)
		return SIM_INVALID;
	if (bytes > sim_card()->memory)
		return SIM_NOMEM;
	pthread_mutex_lock(&memory_lock);
	addr = device_take(device, bytes);
	if (!addr && pools_release(device))
		addr = device_take(device, bytes);
	pthread_mutex_unlock(&memory_lock);
	if (!addr)
		return SIM_NOMEM;
	*out = addr;
	return SIM_OK;
}

static void free_small(struct arena *a, uintptr_t addr)
{
	arena_give(a, addr);
	if (a->slots.free < a->slots.n)
		return;
	unlink_small(a);
	arena_drop(a);
}

int memory_free(uintptr_t addr)
{
	struct block b;
	int result = SIM_INVALID;

	if (memory_space(&(size_t){ 0 }) && addr >= vmm_base())
		return graph_memory_free(addr);
	pthread_mutex_lock(&memory_lock);
	if (block_find(addr, &b) && b.base == addr) {
		contents_drop(b.base, b.bytes);
		if (!b.arena)
			pages_give(addr);
		else if (b.arena->pool)
			pool_block_free(b.arena, addr);
		else
			free_small(b.arena, addr);
		result = SIM_OK;
	}
	pthread_mutex_unlock(&memory_lock);
	return result;
}

/* Frees a context's memory on the device: the pages of small allocations, then all others. */
static void end_locked(struct sim_ctx *ctx)
{
	uint32_t owner = (uint32_t)ctx->id;

	for (struct arena *a = small[ctx->device], *next; a; a = next) {
		next = a->next;
		if (a->owner != owner)
			continue;
		contents_drop(a->base, a->pages * SIM_PAGE);
		unlink_small(a);
		arena_drop(a);
	}
	space_empty(ctx->device, owner);
	ctx_deactivate(ctx);
}

void memory_end(struct sim_ctx *ctx)
{
	host_end((uint32_t)ctx->id);
	pthread_mutex_lock(&memory_lock);
	end_locked(ctx);
	pthread_mutex_unlock(&memory_lock);
}

void memory_reset(int device)
{
	if (!ctx_primary(device)->active)
		return;
	graph_memory_reset(device);
	host_end((uint32_t)ctx_primary(device)->id);
	pthread_mutex_lock(&memory_lock);
	pools_reset(device);
	graphs_reset(device);
	end_locked(ctx_primary(device));
	pthread_mutex_unlock(&memory_lock);
}

/* ---- functions of sim.h ---- */

int sim_alloc(void **ptr, size_t bytes)
{
	uintptr_t addr = 0;
	int result = sim_enter();

	if (!result)
		result = memory_alloc(sim_device(), &addr, bytes);
	*ptr = (void *)addr;
	return result;
}

int sim_free(void *ptr)
{
	return ptr ? memory_free((uintptr_t)ptr) : SIM_OK;
}

bool sim_is_device_ptr(const void *ptr)
{
	size_t bytes;
	uintptr_t base = memory_space(&bytes);

	return base && (uintptr_t)ptr - base < bytes;
}

int sim_ptr_device(const void *ptr)
{
	struct block b;
	bool found;

	if (!sim_is_device_ptr(ptr))
		return -1;
	pthread_mutex_lock(&memory_lock);
	found = block_find((uintptr_t)ptr, &b);
	pthread_mutex_unlock(&memory_lock);
	return found ? b.device : -1;
}

uint32_t memory_owner(uintptr_t addr)
{
	struct block b = { 0 };

	pthread_mutex_lock(&memory_lock);
	block_find(addr, &b);
	pthread_mutex_unlock(&memory_lock);
	return b.owner;
}

size_t memory_room(uintptr_t addr, bool across)
{
	size_t room = 0;
	struct block b;

	if (!sim_is_device_ptr((void *)addr))
		return 0;
	pthread_mutex_lock(&memory_lock);
	if (block_find(addr, &b))
		room = across && addr >= vmm_base() ? sim_card()->memory : b.base + b.bytes - addr;
	pthread_mutex_unlock(&memory_lock);
	return room;
}
