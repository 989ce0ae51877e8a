/* SPDX-License-Identifier: Apache-2.0
 *
 * Device memory, its pools, mapped addresses, memory of graphs, and host memory known to the
 * device. Results are the ints of sim.h.
 */
#pragma once

#include "core.h"
#include "slots.h"

/* ---- space.c ---- */
/* A span of device memory cut into pieces: a page of small allocations, or a span of a pool. */
struct arena {
	struct slots slots;
	uintptr_t base;
	size_t pages, piece;
	int device;
	uint32_t owner; /* id of its context; 0: none */
	void *pool;
	struct arena *next, *prev;
};

struct block {
	uintptr_t base;
	size_t bytes;
	int device;
	uint32_t owner;
	struct arena *arena; /* NULL: whole pages */
};

extern pthread_mutex_t memory_lock; /* protects blocks, pools and mappings */
int memory_init(void);
bool memory_charge(int device, size_t bytes);
void memory_uncharge(int device, size_t bytes);
size_t memory_in_use(int physical); /* bytes, by all processes */
/* The caller holds memory_lock from here to space_empty(). pages_take(): charged; 0 if full. */
uintptr_t pages_take(int device, size_t pages, uint64_t bytes, uint32_t owner);
void pages_give(uintptr_t base);
struct arena *arena_new(int device, size_t pages, size_t piece, void *pool, uint32_t owner);
void arena_drop(struct arena *a);
uintptr_t arena_take(struct arena *a, size_t bytes); /* 0: no room */
size_t arena_give(struct arena *a, uintptr_t addr);  /* freed bytes */
bool space_block(uintptr_t addr, struct block *out); /* below vmm_base() */
void space_empty(int device, uint32_t owner);	     /* frees the pages of a context */
/* These do not need the lock. */
uintptr_t memory_space(size_t *bytes); /* for all devices; 0: none yet */
uintptr_t vmm_base(void);
size_t vmm_pages(void);

/* ---- memory.c ---- */
bool block_find(uintptr_t addr, struct block *out); /* memory_lock held */
/* These lock themselves. */
int memory_alloc(int device, uintptr_t *out, size_t bytes);
int memory_free(uintptr_t addr);
/* Bytes from an address to the end of its allocation; 0: not on the device. With `across` the
 * card's memory for mapped addresses, where the next mapping may adjoin. */
size_t memory_room(uintptr_t addr, bool across);
uint32_t memory_owner(uintptr_t addr); /* the id of its context; 0: it has none */
struct sim_ctx;
void memory_reset(int device);	      /* ends the primary context, with pools and graphs */
void memory_end(struct sim_ctx *ctx); /* one that the program made */

/* ---- vmm.c ---- */
bool vmm_mapping(uintptr_t addr, struct block *out); /* mapping at addr; needs memory_lock */
int vmm_create(void **handle, size_t bytes, int device, bool on_host, const void *prop);
int vmm_release(void *handle);
int vmm_retain(void **handle, uintptr_t addr);
const void *vmm_properties(void *handle);
int vmm_reserve(uintptr_t *addr, size_t bytes, size_t align, uintptr_t hint);
int vmm_unreserve(uintptr_t addr, size_t bytes);
int vmm_map(uintptr_t addr, size_t bytes, size_t offset, void *handle);
int vmm_unmap(uintptr_t addr, size_t bytes);
int vmm_set_access(uintptr_t addr, size_t bytes, int device, int access);
int vmm_get_access(uintptr_t addr, int device, int *access);
int vmm_share(int *fd, void *handle); /* as a file descriptor */
int vmm_import(void **handle, int fd);

/* ---- pools.c ---- */
struct sim_pool;
struct sim_pool *pool_default(int device);
struct sim_pool *pool_current(int device);
int pool_set_current(int device, struct sim_pool *pool);
int pool_create(struct sim_pool **out, int device, size_t max_size);
int pool_destroy(struct sim_pool *pool);
struct sim_pool *pool_check(void *handle);
int pool_alloc(struct sim_pool *pool, uintptr_t *out, size_t bytes);
void pool_block_free(struct arena *a, uintptr_t addr); /* memory_lock held */
int pool_trim(struct sim_pool *pool, size_t keep);
int pool_get(struct sim_pool *pool, int attribute, void *value);
int pool_set(struct sim_pool *pool, int attribute, const void *value);
int pool_device(const struct sim_pool *pool);
void pools_sync(int device); /* a synchronization: frees what exceeds the release thresholds */
void pools_reset(int device);
bool pools_release(int device); /* needs memory_lock; frees unused spans; true if any */

/* ---- graph_memory.c ---- */
int graph_memory_free(uintptr_t addr); /* frees a node's memory by a call */
int graph_memory_trim(int device);     /* frees unused memory of the pool */
void graph_memory_reset(int device);
int graph_memory_get(int device, int attribute, uint64_t *value);
int graph_memory_set(int device, int attribute, const uint64_t *value);
void graphs_reset(int device); /* graph_launch.c: uncharges nodes; needs memory_lock */

/* ---- host.c: pinned, registered and managed host memory ---- */
enum host_kind { HOST_PINNED = 1, HOST_REGISTERED, HOST_MANAGED };
struct host_range {
	uintptr_t base;
	size_t bytes;
	enum host_kind kind;
	unsigned int flags;
	int device;
	uint32_t owner; /* id of a context */
	size_t charged;
};
int host_alloc(void **ptr, size_t bytes, unsigned int flags, enum host_kind kind);
int host_free(void *ptr, enum host_kind kind);
/* Evicts managed pages from the device: all, or those of the range at `only`. True if there were
 * any. Needs memory_lock. */
bool host_evict(int device, uintptr_t only);
void host_prefer(const void *ptr); /* the program wants that range on the host */
int host_register(void *ptr, size_t bytes, unsigned int flags);
int host_unregister(void *ptr);
bool host_find(const void *ptr, struct host_range *out);
void host_end(uint32_t owner);		 /* frees and unregisters a context's ranges */
void host_zero(void *dst, size_t bytes); /* large ranges become untouched pages */
