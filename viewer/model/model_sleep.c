/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks whose physical memory is unmapped while they live (sleep modes of inference engines,
 * torch_memory_saver, arenas that move to the host). They keep their addresses, but use no memory.
 * Such a block is asleep from the unmapping of its last byte until some of it is mapped again. A
 * segment that sleeps is reserved by the framework's own count, but not on the device.
 */
#include "model_parts.h"
#include "../../format/record.h"

static void change(struct model *m, struct model_device *d, struct history *b, bool sleeps,
		   const struct gmt_event *e)
{
	b->asleep = sleeps;
	model_change(m, b, sleeps ? CHANGE_SLEPT : CHANGE_WOKE, e);
	if (sleeps) {
		model_fall(&d->blocks, b->block.size);
		d->asleep += b->block.size;
		d->asleep_most = d->asleep > d->asleep_most ? d->asleep : d->asleep_most;
		return;
	}
	d->asleep -= b->block.size;
	model_rise(m, &d->blocks, b->block.size, e);
}

/* Blocks in [addr, addr + size) lose that part of their memory (away), or get it again. */
static void blocks_change(struct model *m, struct model_device *d, uint64_t addr, uint64_t size,
			  bool away, const struct gmt_event *e)
{
	struct history *b = live_enclosing(&d->live, addr);

	for (b = b ? b : live_from(&d->live, addr); b && b->block.addr < addr + size;
	     b = live_after(&d->live, b)) {
		uint64_t from = b->block.addr > addr ? b->block.addr : addr;
		uint64_t end = b->block.addr + b->block.size;
		uint64_t part = (end < addr + size ? end : addr + size) - from;

		b->away = away ? b->away + part : b->away > part ? b->away - part : 0;
		if (b->asleep != (b->away >= b->block.size))
			change(m, d, b, !b->asleep, e);
	}
}

/* A segment that the framework itself unmaps is freed. If others unmap it, it sleeps. */
void model_unmapped(struct model *m, struct model_device *d, const struct history *mapping,
		    const struct gmt_event *e)
{
	const struct block *b = &mapping->block;
	struct history *away;

	if (!(b->flags & GMT_FLAG_FRAMEWORK) || e->flags & GMT_FLAG_FRAMEWORK ||
	    e->kind != GMT_UNMAP)
		return;
	away = live_insert(&m->away, b->addr);
	away->block.size = b->size;
	away->block.device = b->device;
	away->facts.pool = mapping->facts.pool;
	d->reserved_asleep += b->size;
	blocks_change(m, d, b->addr, b->size, true, e);
}

static void forget_away(struct model *m, uint64_t addr, struct model_device **d, uint64_t *size)
{
	const struct history *away = live_find(&m->away, addr);

	*d = away ? model_device(m, away->block.device) : NULL;
	if (!*d)
		return;
	*size = away->block.size;
	(*d)->reserved_asleep -= *size;
	tree_remove(&m->away, addr);
}

/* Wakes what sleeps at the mapping's address and makes the mapping the framework's again. False if
 * nothing sleeps there. */
bool model_mapped_again(struct model *m, struct history *mapping, const struct gmt_event *e)
{
	const struct history *away = m->away.count ? live_find(&m->away, e->addr) : NULL;
	struct model_device *d;
	uint64_t size;

	if (!away)
		return false;
	mapping->block.flags |= GMT_FLAG_FRAMEWORK;
	mapping->facts.pool = away->facts.pool;
	forget_away(m, e->addr, &d, &size);
	if (d)
		blocks_change(m, d, e->addr, size, false, e);
	return d;
}

/* The addresses are freed, so what slept there is gone. */
void model_va_release(struct model *m, const struct gmt_event *e)
{
	struct history *away = m->away.count ? live_from(&m->away, e->addr) : NULL;
	struct model_device *d;
	uint64_t size;

	for (; away && away->block.addr - e->addr < e->size; away = live_from(&m->away, e->addr))
		forget_away(m, away->block.addr, &d, &size);
}
