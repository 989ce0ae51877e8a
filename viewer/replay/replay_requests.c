/* SPDX-License-Identifier: Apache-2.0 */
/* Turns events of blocks into requests, with requested sizes from autograd's tags. Reads events
 * itself, because no table has uses by other streams, captures, and the reserved bytes after each
 * block. */
#include "replay_requests.h"

#include "../../format/record.h"

static uint16_t stream_index(struct requests *r, uint64_t stream)
{
	size_t i = 0;

	while (i < r->stream_count && r->streams[i] != stream)
		i++;
	if (i == UINT16_MAX)
		return 0;
	if (i == r->stream_count)
		*need_item(r->streams, r->stream_count, r->stream_room) = stream;
	return (uint16_t)i;
}

static uint32_t units(uint64_t bytes)
{
	uint64_t n = (bytes + UNIT - 1) / UNIT;

	return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

/* Adds requests for everything between two blocks: an emptied cache, memory taken by other
 * processes. */
static void before_block(struct requests *r)
{
	if (r->emptied)
		requests_add(r, REQUEST_EMPTY, 0);
	if (r->failed && r->retried)
		r->retries++;
	requests_limit(r);
	r->failed = r->emptied = r->retried = false;
}

static void after_block(struct requests *r, uint64_t reserved)
{
	if (reserved != r->reserved)
		requests_add(r, REQUEST_AFTER, reserved / UNIT);
	r->reserved = reserved;
	if (reserved > r->peak_reserved)
		r->peak_reserved = reserved;
	r->asks++;
}

static struct request_life *new_life(struct requests *r, const struct gmt_event *e)
{
	struct request_life *life = rows_add(&r->lives);

	life->addr = e->addr;
	life->units = units(e->size);
	life->stack = e->stack;
	life->stream = stream_index(r, e->stream);
	life->born = r->list.count;
	return life;
}

static void end_life(struct requests *r, uint64_t addr)
{
	uint32_t *place = map_get(&r->live, addr);
	struct request_life *life;

	if (!place)
		return;
	life = requests_life(r, *place);
	life->died = r->list.count;
	r->now -= (uint64_t)life->units * UNIT;
	requests_add(r, REQUEST_GIVE, *place);
	*map_put(&r->ended, addr, NULL) = *place;
	map_remove(&r->live, addr);
}

/* Use by another stream: the latest life at that address has one more stream to wait for. */
static void used(struct requests *r, const struct gmt_event *e)
{
	const uint32_t *place = map_get(&r->ended, e->addr);

	if (!place || requests_life(r, *place)->waits == UINT8_MAX)
		return;
	requests_life(r, *place)->used = true;
	requests_life(r, *place)->waits++;
}

static void ready(struct requests *r, const struct gmt_event *e)
{
	const uint32_t *place = map_get(&r->ended, e->addr);
	struct request_life *life = place ? requests_life(r, *place) : NULL;

	if (life && life->waits && !--life->waits)
		requests_add(r, REQUEST_READY, *place);
}

static void block_allocated(struct requests_all *all, struct requests *r, const struct gmt_event *e)
{
	struct request_life *life;

	before_block(r);
	end_life(r, e->addr);
	*map_put(&r->live, e->addr, NULL) = r->lives.count;
	requests_add(r, REQUEST_TAKE, r->lives.count);
	life = new_life(r, e);
	life->born--;
	life->there = e->seq <= all->state_seq;
	life->tells = all->tells && !(e->flags & GMT_FLAG_NO_TENSOR);
	life->pool = pools_of(&r->pools, e);
	life->segment = requests_segment(r, e->addr);
	if (life->segment && r->segments[life->segment - 1].stream == UINT16_MAX) {
		r->segments[life->segment - 1].stream = life->stream;
		r->segments[life->segment - 1].pool = life->pool;
		r->segments[life->segment - 1].own =
			life->pool && r->pools.items[life->pool - 1].own;
		life->fresh = true;
	}
	r->now += e->size;
	if (r->now > r->peak)
		r->peak = r->now;
	after_block(r, e->arg1);
}

static void block_freed(struct requests *r, const struct gmt_event *e)
{
	before_block(r);
	end_life(r, e->addr);
	after_block(r, e->arg1);
}

static void refused(struct requests *r, const struct gmt_event *e)
{
	uint64_t above = e->arg1 + e->size;

	/* A cache that was emptied before this event was emptied by the allocator itself. */
	r->emptied = false;
	if (!r->failed && (!r->own_limit || above < r->own_limit))
		r->own_limit = above;
	before_block(r);
	r->ooms++;
	requests_add(r, REQUEST_REFUSED, r->lives.count);
	new_life(r, e)->exact = true;
	requests_life(r, r->lives.count - 1)->asked = units(e->size);
	after_block(r, e->arg1);
}

/* A tensor's storage in a block shows the requested size. */
static void storage(struct requests *r, const struct gmt_event *e)
{
	const uint32_t *place = map_get(&r->live, e->addr);
	struct request_life *life = place ? requests_life(r, *place) : NULL;
	uint32_t asked = units(e->size);

	if (life && asked <= life->units && asked > life->asked)
		life->asked = asked;
}

/* Allocations from a private pool begin or end, by a thread or a capture. The cache was emptied
 * before a capture. */
static void takes_from(struct requests *r, const struct gmt_event *e)
{
	pools_event(&r->pools, e);
	if (e->kind == GMT_GRAPH_BEGIN && !(e->flags & GMT_FLAG_OWN_POOL))
		requests_add(r, REQUEST_CAPTURE, 1);
}

/* Handlers by kind of event; an allocation has one with more arguments. */
static void (*const of_device[])(struct requests *, const struct gmt_event *) = {
	[GMT_BLOCK_FREE] = block_freed,
	[GMT_BLOCK_OOM] = refused,
	[GMT_REUSE_WAIT] = used,
	[GMT_REUSE_READY] = ready,
	[GMT_GRAPH_BEGIN] = takes_from,
	[GMT_GRAPH_END] = takes_from,
	[GMT_SEGMENT_POOL] = requests_segments_pool,
	[GMT_TAG_LEAF] = storage,
	[GMT_TAG_SAVED] = storage,
	[GMT_TAG_GRAD] = storage,
	[GMT_TAG_MOVED] = storage,
	[GMT_TAG_ASKED] = storage,
};

static int event(void *ctx, const struct gmt_event *e)
{
	struct requests_all *all = ctx;
	struct requests *r = requests_device(all, e->device);

	if (e->seq > all->until || (all->leave && repeats_at(all->leave, e->seq)))
		return 0;
	if (e->kind == GMT_USE)
		all->uses = true;
	if (e->kind == GMT_DROPPED || e->kind == GMT_THINNED)
		all->incomplete = true;
	else if (e->kind == GMT_BLOCK_ALLOC && r)
		block_allocated(all, r, e);
	else if (e->kind < sizeof(of_device) / sizeof(*of_device) && of_device[e->kind] && r)
		of_device[e->kind](r, e);
	else
		requests_memory(all, e);
	return 0;
}

int requests_read(struct requests_all *all, struct recording *recording, uint64_t until,
		  const struct repeats *leave)
{
	struct defs_text state = defs_meta(&recording->defs, "state_events");
	struct defs_text sizes = defs_meta(&recording->defs, "torch.sizes");
	struct defs_text pools = defs_meta(&recording->defs, "torch.graphs");

	memset(all, 0, sizeof(*all));
	all->tells_pools = pools.len == 2 && !memcmp(pools.s, "on", 2);
	all->tells = sizes.len == 2 && !memcmp(sizes.s, "on", 2);
	all->until = until;
	all->leave = leave;
	all->state_seq = state.len ? strtoull(state.s, NULL, 10) : 0;
	return recording_run(recording, event, all);
}

struct requests *requests_of(struct requests_all *all, int device)
{
	struct requests *found = NULL;

	FOR_EACH (struct requests, r, all->devices, all->count)
		if ((device < 0 && r->asks && (!found || r->peak > found->peak)) ||
		    (r->device == device && r->asks))
			found = r;
	return found;
}

void requests_free(struct requests_all *all)
{
	FOR_EACH (struct requests, r, all->devices, all->count) {
		rows_free(&r->list);
		rows_free(&r->lives);
		map_free(&r->live);
		map_free(&r->ended);
		free(r->segments);
		tree_free(&r->placed);
		free(r->streams);
		pools_free(&r->pools);
	}
	free(all->devices);
	map_items_free(&all->memory);
}
