/* SPDX-License-Identifier: Apache-2.0 */
/* Events of uses: the blocks that a launch, a transfer or a CUDA graph can touch. */
#include "../../format/record.h"
#include "../../format/uses.h"
#include "../base/sorted.h"
#include "model_parts.h"

#define CACHE_BITS 12
#define WRITES	   64 /* writes that are remembered */

struct uses_recent {
	uint32_t kinds[ROWS_RECENT];
	struct use_place {
		uint64_t place;
		struct history *block;
		uint32_t life; /* valid while the block is this life */
	} places[1 << CACHE_BITS];
	struct use_write {
		uint64_t from, to, ns;
		uint32_t life;
	} writes[WRITES]; /* since the last launch, not read yet */
	unsigned write_count;
};

static struct history *framework_block(struct model *m, uint64_t place)
{
	struct history *h = live_enclosing(&m->devices[m->uses.device].live, place);

	for (int d = 0; !h && d < m->device_end; d++) {
		h = m->devices[d].live.count ? live_enclosing(&m->devices[d].live, place) : NULL;
		m->uses.device = h ? d : m->uses.device;
	}
	return h;
}

/* Memory from CUDA calls that is no segment of the framework. */
static struct history *cuda_memory(struct model *m, uint64_t place)
{
	struct history *h = live_enclosing(&m->memory, place);

	if (h)
		return model_is_segment(h->block.memory, h->block.flags) ? NULL : h;
	h = m->mapped.count ? live_enclosing(&m->mapped, place) : NULL;
	return h && !(h->block.flags & GMT_FLAG_FRAMEWORK)
		       ? live_find(&m->physical, h->block.handle)
		       : NULL;
}

/* The cache stays valid: blocks of the tree do not move, and a reused one has another life. */
static struct history *block_at(struct model *m, uint64_t place)
{
	struct use_place *at =
		&m->uses.recent
			 ->places[place / GMT_USE_UNIT * 0x9e3779b97f4a7c15u >> (64 - CACHE_BITS)];
	struct history *h;

	if (at->place == place && at->life && at->block->block.life == at->life)
		return at->block;
	h = framework_block(m, place);
	if (!h)
		return cuda_memory(m, place);
	*at = (struct use_place){ place, h, h->block.life };
	return h;
}

/* ---- works and what they touch ---- */

static uint32_t add_work(struct model *m, const struct gmt_event *e)
{
	struct uses *u = &m->uses;
	const struct use_kind kind = { .stream = e->stream,
				       .name = gmt_use_by(e),
				       .node = e->name,
				       .stack = e->stack,
				       .thread = e->thread,
				       .kind = e->kind,
				       .transfer =
					       e->kind == GMT_TRANSFER ? (uint16_t)e->arg0 : 0 };
	struct use_work *w = rows_add(&u->works);

	*w = (struct use_work){ e->seq, e->time_ns,
				rows_share(&u->kinds, u->recent->kinds, &kind) };
	return u->works.count - 1;
}

/* False if this work has touched it already. */
static bool note_use(struct model *m, struct history *h, uint32_t work, uint64_t ns)
{
	struct life_uses *x = &h->uses;
	uint64_t waited = ns > h->used_ns ? ns - h->used_ns : 0;

	if (!h->block.life || x->last == work)
		return false;
	if (m->watch)
		m->watch->used(m->watcher, h, work, x->last);
	if (x->count && waited > h->pause_ns) {
		h->pause_ns = waited;
		x->pause = x->last;
		x->resume = work;
	}
	if (x->count && work - x->last > x->widest)
		x->widest = work - x->last;
	x->first = x->count ? x->first : work;
	x->last = work;
	x->count++;
	h->used_ns = ns;
	return true;
}

static void touch(struct model *m, uint32_t work, const uint64_t *places, size_t count)
{
	uint64_t ns = uses_work(&m->uses, work)->ns;
	uint32_t lives[USES_ROW];
	unsigned n = 0;

	for (size_t i = 0; i < count; i++) {
		struct history *h = block_at(m, places[i]);

		if (!h || !note_use(m, h, work, ns))
			continue;
		lives[n++] = h->block.life - 1;
		if (n == USES_ROW) {
			uses_add_row(&m->uses, work, lives, n);
			n = 0;
		}
	}
	if (n)
		uses_add_row(&m->uses, work, lives, n);
}

/* ---- events ---- */

static void take_launch(struct model *m, const struct gmt_event *e)
{
	uint64_t places[GMT_USE_PLACES];
	unsigned n = gmt_use_places(e, places);
	bool first = !(e->flags & GMT_FLAG_MORE);
	uint32_t *work = first ? map_put(&m->uses.threads, e->thread, NULL)
			       : map_get(&m->uses.threads, e->thread);

	m->uses.recent->write_count = 0;
	if (first)
		*work = n ? add_work(m, e) : 0;
	if (work && *work)
		touch(m, *work, places, n);
}

static void take_graph_use(struct model *m, const struct gmt_event *e)
{
	struct use_graph *g = map_item(&m->uses.graphs, e->stream);
	uint64_t places[GMT_USE_PLACES];
	unsigned n = gmt_use_places(e, places);

	if (!(e->flags & GMT_FLAG_MORE))
		g->count = 0;
	g->sorted = false;
	for (unsigned i = 0; i < n; i++)
		*need_item(g->places, g->count, g->room) = places[i];
}

/* Nodes of a graph share most of their places. */
static void sort_places(struct use_graph *g)
{
	size_t kept = 0;

	SORT(g->places, g->count, sorted_numbers);
	for (size_t i = 0; i < g->count; i++)
		if (!kept || g->places[kept - 1] != g->places[i])
			g->places[kept++] = g->places[i];
	g->count = kept;
	g->sorted = true;
}

static void take_graph_launch(struct model *m, const struct gmt_event *e)
{
	struct use_graph *g = map_find(&m->uses.graphs, e->addr);

	m->uses.recent->write_count = 0;
	if (!g || !g->count)
		return;
	if (!g->sorted)
		sort_places(g);
	touch(m, add_work(m, e), g->places, g->count);
}

/* False for pitched rows, which leave out the bytes between them. */
static bool is_solid(const struct model *m, const struct gmt_event *e)
{
	const char *by = defs_string(m->defs, gmt_use_by(e)).s;

	return !strstr(by, "2D") && !strstr(by, "3D");
}

/* Counts the bytes of earlier copies and sets that this transfer overwrites unread. It ends writes
 * that it reads; a collective ends all, because it might read and write. */
static void follow_writes(struct model *m, const struct gmt_event *e)
{
	struct uses_recent *r = m->uses.recent;
	bool writes = e->arg0 == GMT_TRANSFER_TARGET || e->arg0 == GMT_TRANSFER_SET;
	const struct history *h = block_at(m, e->addr);
	struct use_write now = { e->addr, e->addr + e->size, e->time_ns, h ? h->block.life : 0 };
	struct use_lost *lost;
	unsigned kept = 0;

	for (unsigned i = 0; i < r->write_count; i++) {
		struct use_write w = r->writes[i];
		bool meets = w.from < now.to && now.from < w.to;

		if (meets && writes && w.life == now.life && now.from <= w.from && w.to <= now.to &&
		    is_solid(m, e)) {
			lost = map_item(&m->uses.lost, w.life);
			lost->bytes += w.to - w.from;
			lost->ns = e->time_ns - w.ns > lost->ns ? e->time_ns - w.ns : lost->ns;
		}
		if (!meets)
			r->writes[kept++] = w;
	}
	r->write_count = writes || e->arg0 == GMT_TRANSFER_SOURCE ? kept : 0;
	if (writes && now.life && r->write_count < WRITES)
		r->writes[r->write_count++] = now;
}

/* The first byte of a transfer is enough to find its block: a transfer stays inside one block. */
static void take_transfer(struct model *m, const struct gmt_event *e)
{
	touch(m, add_work(m, e), &e->addr, 1);
	if (e->arg0 != GMT_TRANSFER_PREFETCH)
		follow_writes(m, e);
}

void model_use(struct model *m, const struct gmt_event *e)
{
	static model_handler *const handlers[] = { [GMT_USE - GMT_USE] = take_launch,
						   [GMT_TRANSFER - GMT_USE] = take_transfer,
						   [GMT_GRAPH_USE - GMT_USE] = take_graph_use,
						   [GMT_GRAPH_LAUNCH - GMT_USE] =
							   take_graph_launch };

	if (!m->uses.recent)
		m->uses.recent = need_new(sizeof(*m->uses.recent));
	use_tally_event(&m->uses.tally, e);
	handlers[e->kind - GMT_USE](m, e);
}
