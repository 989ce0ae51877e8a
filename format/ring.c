/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rings of the live file. Producer: release stores of commit and head after the slot's content;
 * consumer: acquire loads of them, and a release store of tail after it has read. Push runs on the
 * application's threads: no calls out, no locks, no allocation.
 */
#include <string.h>

#include "ring.h"

#include "record.h"

_Static_assert(sizeof(struct gmt_event) == 80, "the live file's layout is part of the format");
_Static_assert(sizeof(struct gmt_slot) == GMT_SLOT_BYTES, "slot layout");
_Static_assert(sizeof(struct gmt_ring) == 128, "ring layout");
_Static_assert(sizeof(struct gmt_live_header) == 72, "live header layout");

#define FIRST_BYTES 76u /* payload in a definition's first slot, after its length */
#define MORE_BYTES  80u /* payload in each further one */

static uint32_t def_slots(uint32_t len)
{
	return len <= FIRST_BYTES ? 1 : 1 + (len - FIRST_BYTES + MORE_BYTES - 1) / MORE_BYTES;
}

void gmt_ring_init(void *region, uint32_t thread)
{
	struct gmt_ring *r = region;

	memset(r, 0, sizeof(*r));
	r->thread = thread;
	r->state = GMT_RING_OWNED;
	for (uint32_t i = 0; i < GMT_RING_SLOTS; i++)
		if (gmt_slot_at(r, i)->commit)
			gmt_slot_at(r, i)->commit = 0;
}

static void fill_more(struct gmt_ring *r, uint64_t pos, const struct gmt_def *d, uint32_t done)
{
	while (done < d->len) {
		struct gmt_slot *s = gmt_slot_at(r, pos);
		uint32_t n = d->len - done < MORE_BYTES ? d->len - done : MORE_BYTES;

		s->type = GMT_SLOT_MORE;
		s->def_kind = d->kind;
		s->def_id = d->id;
		memcpy(s->bytes, (const char *)d->payload + done, n);
		gmt_store_release(&s->commit, ++pos);
		done += n;
	}
}

bool gmt_ring_push_def(struct gmt_ring *r, const struct gmt_def *d)
{
	uint64_t head = __atomic_load_n(&r->head, __ATOMIC_RELAXED);
	struct gmt_slot *s = gmt_slot_at(r, head);
	uint32_t slots = def_slots(d->len);
	uint32_t first = d->len < FIRST_BYTES ? d->len : FIRST_BYTES;

	if (d->len > GMT_DEF_MAX || head - gmt_load_acquire(&r->tail) > GMT_RING_SLOTS - slots)
		return false;
	s->type = GMT_SLOT_DEF;
	s->def_kind = d->kind;
	s->def_id = d->id;
	memcpy(s->bytes, &d->len, sizeof(d->len));
	if (first)
		memcpy(s->bytes + 4, d->payload, first);
	fill_more(r, head + 1, d, first);
	gmt_store_release(&s->commit, head + 1);
	gmt_store_release(&r->head, head + slots);
	return true;
}

uint32_t gmt_ring_used(const struct gmt_ring *r)
{
	return __atomic_load_n(&r->head, __ATOMIC_RELAXED) - gmt_load_acquire(&r->tail);
}

static int peek_def(const struct gmt_ring *r, uint64_t *pos, struct gmt_def *d, uint8_t *buf)
{
	const struct gmt_slot *s = gmt_slot_at(r, *pos);
	uint32_t len, slots, done;

	memcpy(&len, s->bytes, sizeof(len));
	if (len > GMT_DEF_MAX)
		return -GMT_ERR_BAD_RECORD;
	slots = def_slots(len);
	done = len < FIRST_BYTES ? len : FIRST_BYTES;
	memcpy(buf, s->bytes + 4, done);
	for (uint32_t i = 1; i < slots; i++) {
		const struct gmt_slot *m = gmt_slot_at(r, *pos + i);
		uint32_t n = len - done < MORE_BYTES ? len - done : MORE_BYTES;

		if (gmt_load_acquire(&m->commit) != *pos + i + 1 || m->type != GMT_SLOT_MORE ||
		    m->def_kind != s->def_kind || m->def_id != s->def_id)
			return -GMT_ERR_BAD_RECORD;
		memcpy(buf + done, m->bytes, n);
		done += n;
	}
	*d = (struct gmt_def){ .kind = s->def_kind, .id = s->def_id, .len = len, .payload = buf };
	*pos += slots;
	return 1;
}

/* No complete item is at pos: 0 if it is yet to be produced, an error if the head is past it. */
static int peek_nothing(const struct gmt_ring *r, uint64_t pos)
{
	int64_t ahead = (int64_t)(gmt_load_acquire(&r->head) - pos);

	if (ahead > 0 && gmt_load_acquire(&gmt_slot_at(r, pos)->commit) != pos + 1)
		return -GMT_ERR_BAD_RECORD;
	return 0;
}

int gmt_ring_peek(const struct gmt_ring *r, uint64_t *pos, struct gmt_ring_item *out, void *buf)
{
	const struct gmt_slot *s = gmt_slot_at(r, *pos);

	if (gmt_load_acquire(&s->commit) != *pos + 1)
		return peek_nothing(r, *pos);
	out->is_def = s->type == GMT_SLOT_DEF;
	if (out->is_def)
		return peek_def(r, pos, &out->def, buf);
	if (s->type != GMT_SLOT_EVENT || s->event.kind == 0)
		return -GMT_ERR_BAD_RECORD;
	out->event = s->event;
	*pos += 1;
	return 1;
}

const struct gmt_event *gmt_ring_event_at(const struct gmt_ring *r, uint64_t pos)
{
	const struct gmt_slot *s = gmt_slot_at(r, pos);

	return gmt_load_acquire(&s->commit) == pos + 1 && s->type == GMT_SLOT_EVENT ? &s->event
										    : NULL;
}

void gmt_ring_release(struct gmt_ring *r, uint64_t pos)
{
	gmt_store_release(&r->tail, pos);
}
