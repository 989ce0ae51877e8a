/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of graphs. An allocation node has an address from its creation until its last reference
 * goes. Memory is mapped there from each launch of its graph until it is freed: by a node, by a
 * call, or by the next launch of a graph that frees what is left. Graphs of a device take their
 * memory from a pool of their own, which keeps it until cudaDeviceGraphMemTrim. Work is done at the
 * call, so graphs never run at once and share the pool. Any thread; one lock, around memory_lock.
 */
#include <stdlib.h>
#include "devices.h"
#include "graph.h"
#include "memory.h"

#define PIECE ((size_t)512)

enum { ATTR_USED, ATTR_USED_HIGH, ATTR_RESERVED, ATTR_RESERVED_HIGH, ATTRS };

struct graph_block {
	uintptr_t addr;
	size_t bytes, room; /* requested; of reserved addresses */
	int device;
	void *physical;		       /* mapped memory, not charged to the device */
	const struct sim_graph *graph; /* graph of its node; NULL once destroyed */
	bool freed_inside, live;       /* by a node of its graph; has memory now */
	unsigned int refs;	       /* nodes, executable ones too, and 1 while live */
	struct graph_block *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct graph_block *blocks;
static uint64_t pools[SIM_MAX_DEVICES][ATTRS];

static size_t counted(const struct graph_block *b)
{
	return (b->bytes + PIECE - 1) & ~(PIECE - 1);
}

static struct graph_block *block_at(uintptr_t addr)
{
	struct graph_block *b = blocks;

	while (b && b->addr != addr)
		b = b->next;
	return b;
}

static void drop_locked(struct graph_block *b)
{
	struct graph_block **p = &blocks;

	if (--b->refs)
		return;
	while (*p != b)
		p = &(*p)->next;
	*p = b->next;
	vmm_unreserve(b->addr, b->room);
	vmm_release(b->physical);
	free(b);
}

struct graph_block *graph_block_keep(struct graph_block *b)
{
	pthread_mutex_lock(&lock);
	b->refs++;
	pthread_mutex_unlock(&lock);
	return b;
}

void graph_block_drop(struct graph_block *b)
{
	pthread_mutex_lock(&lock);
	drop_locked(b);
	pthread_mutex_unlock(&lock);
}

/* Graphs have a handful of such nodes, so a list is enough. */
static int block_new(struct graph_block **out, const struct sim_graph *g, int device, size_t bytes)
{
	static const unsigned char prop[32];
	struct graph_block *b = calloc(1, sizeof(*b));
	int result = b ? SIM_OK : SIM_NOMEM;

	if (result)
		return result;
	*b = (struct graph_block){
		.bytes = bytes, .room = sim_whole_pages(bytes), .device = device, .graph = g
	};
	result = vmm_create(&b->physical, b->room, device, true, prop);
	if (!result)
		result = vmm_reserve(&b->addr, b->room, 0, 0);
	if (result) {
		if (b->physical)
			vmm_release(b->physical);
		free(b);
		return result;
	}
	pthread_mutex_lock(&lock);
	b->next = blocks;
	blocks = b;
	b->refs = 1;
	pthread_mutex_unlock(&lock);
	*out = b;
	return SIM_OK;
}

int graph_allocates(struct sim_graph *g, int device, size_t bytes, struct node_spec *out)
{
	if (!bytes)
		return SIM_INVALID;
	if (bytes > sim_card()->memory)
		return SIM_NOMEM;
	*out = (struct node_spec){ .type = NODE_MEM_ALLOC };
	if (block_new(&out->block, g, device, bytes))
		return SIM_NOMEM;
	out->addr = out->block->addr;
	return SIM_OK;
}

int graph_frees(struct sim_graph *g, uintptr_t addr, struct node_spec *out)
{
	struct graph_block *b;
	int result = SIM_INVALID;

	pthread_mutex_lock(&lock);
	b = block_at(addr);
	if (b && !b->freed_inside) {
		b->freed_inside = b->graph == g;
		b->refs++;
		*out = (struct node_spec){ .type = NODE_MEM_FREE, .addr = addr, .block = b };
		result = SIM_OK;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

void graph_memory_refused(const struct node_spec *spec)
{
	pthread_mutex_lock(&lock);
	if (spec->type == NODE_MEM_FREE)
		spec->block->freed_inside = false;
	drop_locked(spec->block);
	pthread_mutex_unlock(&lock);
}

void graph_memory_orphan(const struct sim_graph *g)
{
	pthread_mutex_lock(&lock);
	for (struct graph_block *b = blocks; b; b = b->next)
		b->graph = b->graph == g ? NULL : b->graph;
	pthread_mutex_unlock(&lock);
}

/* ---- launches ---- */

static void begin_block(struct graph_block *b)
{
	uint64_t *p = pools[b->device];

	vmm_map(b->addr, b->room, 0, b->physical);
	vmm_set_access(b->addr, b->room, b->device, 3);
	b->live = true;
	b->refs++;
	p[ATTR_USED] += counted(b);
	if (p[ATTR_USED] > p[ATTR_USED_HIGH])
		p[ATTR_USED_HIGH] = p[ATTR_USED];
}

static void end(struct graph_block *b)
{
	pools[b->device][ATTR_USED] -= counted(b);
	vmm_unmap(b->addr, b->room);
	b->live = false;
	drop_locked(b);
}

/* Makes the pool hold at least so many bytes; false if the device has no room. */
static bool reserve(int device, uint64_t bytes)
{
	uint64_t *p = pools[device], more;
	bool done;

	bytes = sim_whole_pages(bytes);
	if (bytes <= p[ATTR_RESERVED])
		return true;
	more = bytes - p[ATTR_RESERVED];
	pthread_mutex_lock(&memory_lock);
	done = memory_charge(device, more) ||
	       (pools_release(device) && memory_charge(device, more));
	pthread_mutex_unlock(&memory_lock);
	if (!done)
		return false;
	p[ATTR_RESERVED] = bytes;
	if (bytes > p[ATTR_RESERVED_HIGH])
		p[ATTR_RESERVED_HIGH] = bytes;
	return true;
}

/* Bytes that a launch needs beyond those in use: at the current node, and the most at any node. */
struct need {
	int64_t now[SIM_MAX_DEVICES], most[SIM_MAX_DEVICES];
};

/* False, which fails the launch, if the node's memory was not freed or is not there to free. */
static bool count_node(struct need *n, const struct node_spec *spec, bool frees_left)
{
	const struct graph_block *b = spec->block;
	int64_t *now = &n->now[b->device];
	bool inside = b->freed_inside;

	if (spec->type == NODE_MEM_FREE) {
		*now -= (int64_t)counted(b);
		return inside || b->live;
	}
	if (b->live && frees_left)
		*now -= (int64_t)counted(b);
	else if (b->live)
		return false;
	*now += (int64_t)counted(b);
	if (*now > n->most[b->device])
		n->most[b->device] = *now;
	return true;
}

int graph_memory_prepare(const struct node_spec *const *specs, size_t n, bool frees_left)
{
	struct need need = { 0 };
	int result = SIM_OK;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < n && !result; i++)
		if (!count_node(&need, specs[i], frees_left))
			result = SIM_INVALID;
	for (int d = 0; d < sim_device_count() && !result; d++)
		if (need.most[d] > 0 && !reserve(d, pools[d][ATTR_USED] + (uint64_t)need.most[d]))
			result = SIM_NOMEM;
	for (size_t i = 0; i < n && !result && frees_left; i++)
		if (specs[i]->type == NODE_MEM_ALLOC && specs[i]->block->live)
			end(specs[i]->block);
	pthread_mutex_unlock(&lock);
	return result;
}

void graph_memory_node(const struct node_spec *spec)
{
	pthread_mutex_lock(&lock);
	if (spec->type == NODE_MEM_ALLOC && !spec->block->live)
		begin_block(spec->block);
	else if (spec->type == NODE_MEM_FREE && spec->block->live)
		end(spec->block);
	pthread_mutex_unlock(&lock);
}

/* ---- calls ---- */

int graph_memory_free(uintptr_t addr)
{
	struct graph_block *b;
	int result = SIM_INVALID;

	pthread_mutex_lock(&lock);
	b = block_at(addr);
	if (b && b->live && !b->freed_inside) {
		end(b);
		result = SIM_OK;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

static void trim_locked(int device)
{
	uint64_t *p = pools[device], keep = sim_whole_pages(p[ATTR_USED]);

	pthread_mutex_lock(&memory_lock);
	memory_uncharge(device, p[ATTR_RESERVED] - keep);
	pthread_mutex_unlock(&memory_lock);
	p[ATTR_RESERVED] = keep;
}

int graph_memory_trim(int device)
{
	if (device < 0 || device >= sim_device_count())
		return SIM_BAD_DEVICE;
	pthread_mutex_lock(&lock);
	trim_locked(device);
	pthread_mutex_unlock(&lock);
	return SIM_OK;
}

void graph_memory_reset(int device)
{
	struct graph_block *b;

	pthread_mutex_lock(&lock);
	do {
		for (b = blocks; b && !(b->live && b->device == device);)
			b = b->next;
		if (b)
			end(b);
	} while (b);
	trim_locked(device);
	pthread_mutex_unlock(&lock);
}

int graph_memory_get(int device, int attribute, uint64_t *value)
{
	if (device < 0 || device >= sim_device_count())
		return SIM_BAD_DEVICE;
	if (!value || attribute < 0 || attribute >= ATTRS)
		return SIM_INVALID;
	pthread_mutex_lock(&lock);
	*value = pools[device][attribute];
	pthread_mutex_unlock(&lock);
	return SIM_OK;
}

/* High-water marks accept only 0, which restarts them at the current value. */
int graph_memory_set(int device, int attribute, const uint64_t *value)
{
	if (device < 0 || device >= sim_device_count())
		return SIM_BAD_DEVICE;
	if (!value || *value || (attribute != ATTR_USED_HIGH && attribute != ATTR_RESERVED_HIGH))
		return SIM_INVALID;
	pthread_mutex_lock(&lock);
	pools[device][attribute] = pools[device][attribute - 1];
	pthread_mutex_unlock(&lock);
	return SIM_OK;
}
