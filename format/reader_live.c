/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the events in a live file's rings, of a process that was killed or still runs. Each region
 * is copied twice by pread. Everything committed in the first copy is complete in the second; a
 * single copy does not guarantee the order in which its parts were read. Then the tail is read
 * again: slots from that tail on had not been released when they were copied, so the producer
 * cannot have overwritten them meanwhile. Everything that the rings released before is in the
 * recording, which is therefore read after the live file.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "control.h"
#include "record.h"
#include "reader_parts.h"

static bool keep_event(struct reader_live *l, const struct gmt_event *e)
{
	if (!reader_grow((void **)&l->events, &l->events_room, l->events_used, sizeof(*e)))
		return false;
	l->events[l->events_used] = *e;
	if (gmt_kind_is_known(e->kind) && !(gmt_kind_fields(e->kind) & F_DEVICE))
		l->events[l->events_used].device = -1;
	l->events_used++;
	return true;
}

static bool keep_def(struct reader_live *l, const struct gmt_def *d)
{
	size_t need = l->bytes_used + d->len;

	if (need >= l->bytes_room) { /* also for an empty payload, which needs an address too */
		uint8_t *p = reader_memory(l->bytes, need * 2 + 1);

		if (!p)
			return false;
		l->bytes = p;
		l->bytes_room = need * 2 + 1;
	}
	if (!reader_grow((void **)&l->defs, &l->defs_room, l->defs_used, sizeof(*d)))
		return false;
	if (d->len)
		memcpy(l->bytes + l->bytes_used, d->payload, d->len);
	l->defs[l->defs_used] = *d;
	l->defs[l->defs_used++].payload = (const void *)l->bytes_used;
	l->bytes_used = need;
	return true;
}

/* Takes the slots from pos to end, stops at the first empty one and skips those that make no sense.
 * at: offset of the slots in the file. 0 or -GMT_ERR_*. */
static int take_ring(struct gmt_reader *r, const struct gmt_ring *ring, uint64_t pos, uint64_t end,
		     uint64_t at, void *buf)
{
	struct gmt_ring_item item;

	while (pos < end) {
		int rc = gmt_ring_peek(ring, &pos, &item, buf);
		bool kept = true;

		if (rc == 0)
			break;
		if (rc < 0) {
			reader_count_skipped(r, at + pos % GMT_RING_SLOTS * GMT_SLOT_BYTES,
					     GMT_SLOT_BYTES, true);
			pos++;
		} else if (item.is_def) {
			kept = keep_def(&r->live, &item.def);
		} else if (!gmt_kind_is_known(item.event.kind) &&
			   !gmt_kind_is_extra(item.event.kind)) {
			return -GMT_ERR_UNKNOWN_KIND;
		} else {
			kept = keep_event(&r->live, &item.event);
		}
		if (!kept)
			return -GMT_ERR_NO_MEMORY;
	}
	return 0;
}

/* Whether all slots were released, and none was committed at the head. */
static bool is_idle(int fd, uint64_t at, const struct gmt_ring *ring)
{
	uint64_t slot = at + GMT_RING_HEAD + ring->head % GMT_RING_SLOTS * GMT_SLOT_BYTES;
	uint64_t commit = 0;

	reader_read(fd, slot, &commit, sizeof(commit));
	return ring->head == ring->tail && commit != ring->head + 1;
}

/* Copies a region's slots as they are in the file now; zeros in place of missing ones. */
static void copy_slots(int fd, uint64_t at, uint8_t *region)
{
	size_t got = reader_read(fd, at + GMT_RING_HEAD, region + GMT_RING_HEAD,
				 GMT_RING_REGION - GMT_RING_HEAD);

	got -= got % GMT_SLOT_BYTES;
	memset(region + GMT_RING_HEAD + got, 0, GMT_RING_REGION - GMT_RING_HEAD - got);
	__sync_synchronize();
}

/* Position after the last committed slot. A thread can die before it advances the head to it. */
static uint64_t committed(const struct gmt_ring *ring, const uint8_t *region)
{
	uint64_t pos = ring->head, commit;

	for (; pos - ring->tail < GMT_RING_SLOTS; pos++) {
		memcpy(&commit, region + GMT_RING_HEAD + pos % GMT_RING_SLOTS * GMT_SLOT_BYTES,
		       sizeof(commit));
		if (commit != pos + 1)
			break;
	}
	return pos;
}

static int take_region(struct gmt_reader *r, int fd, uint64_t at, uint8_t *region, void *buf)
{
	struct gmt_ring *ring = (struct gmt_ring *)region;
	struct gmt_ring again;
	size_t got = reader_read(fd, at, region, sizeof(*ring));
	uint64_t end;

	if (got < sizeof(*ring))
		return 0;
	r->live.dropped += ring->dropped;
	if (is_idle(fd, at, ring))
		return 0;
	if (ring->head - ring->tail > GMT_RING_SLOTS) {
		reader_count_skipped(r, at, GMT_RING_REGION, true);
		return 0;
	}
	copy_slots(fd, at, region);
	end = committed(ring, region);
	copy_slots(fd, at, region);
	if (reader_read(fd, at, &again, sizeof(again)) < sizeof(again))
		return 0;
	return take_ring(r, ring, again.tail, end, at + GMT_RING_HEAD, buf);
}

/*
 * Counts the events that found no room. The recorder writes that count when the program ends, as an
 * event and as a fact about the process. Until then the reader adds both.
 */
static bool keep_dropped(struct gmt_reader *r, int fd)
{
	static const char key[] = { 'r', 'e', 'c', 'o', 'r', 'd', 'e', 'r',
				    '.', 'd', 'r', 'o', 'p', 'p', 'e', 'd' };
	char payload[sizeof(struct gmt_def_meta) + sizeof(key) + 24];
	struct gmt_def_meta head = { .key_len = sizeof(key) };
	struct gmt_def d = { .kind = GMT_DEF_META, .payload = payload };
	struct gmt_event e = { .kind = GMT_DROPPED };
	struct gmt_control c = { 0 };

	reader_read(fd, GMT_CONTROL_AT, &c, offsetof(struct gmt_control, text));
	if (c.dropped > r->live.dropped)
		r->live.dropped = c.dropped;
	if (!r->live.dropped)
		return true;
	memcpy(payload, &head, sizeof(head));
	memcpy(payload + sizeof(head), key, sizeof(key));
	d.len = (uint32_t)(sizeof(head) + sizeof(key) +
			   (size_t)snprintf(payload + sizeof(head) + sizeof(key), 24, "%" PRIu64,
					    r->live.dropped));
	e.arg0 = r->live.dropped;
	return keep_event(&r->live, &e) && keep_def(&r->live, &d);
}

static int by_seq(const void *a, const void *b)
{
	const struct gmt_event *x = a, *y = b;

	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static void put_in_order(struct gmt_reader *r)
{
	struct reader_live *l = &r->live;
	struct gmt_reader_info *info = &r->info;

	for (size_t i = 0; i < l->defs_used; i++)
		l->defs[i].payload = l->bytes + (uintptr_t)l->defs[i].payload;
	if (l->events_used)
		reader_sort(l->events, l->events_used, sizeof(l->events[0]), by_seq);
	for (size_t i = 0; i < l->events_used; i++) {
		const struct gmt_event *e = &l->events[i];

		if (!e->seq)
			continue; /* numbered by reader_live_number */
		if (info->last_seq == 0 || e->seq < info->first_seq)
			info->first_seq = e->seq;
		if (e->seq > info->last_seq)
			info->last_seq = e->seq;
		if (info->last_ns == 0 || e->time_ns < info->first_ns)
			info->first_ns = e->time_ns;
		if (e->time_ns > info->last_ns)
			info->last_ns = e->time_ns;
	}
}

void reader_live_number(struct gmt_reader *r)
{
	struct reader_live *l = &r->live;
	size_t n = 0;

	while (n < l->events_used && !l->events[n].seq) {
		l->events[n].seq = ++r->info.last_seq;
		l->events[n++].time_ns = r->info.last_ns;
	}
	if (n)
		reader_sort(l->events, l->events_used, sizeof(l->events[0]), by_seq);
}

bool reader_live_header(int fd, uint64_t size, struct gmt_live_header *h)
{
	return size >= sizeof(*h) && reader_read(fd, 0, h, sizeof(*h)) == sizeof(*h) &&
	       h->magic == GMT_LIVE_MAGIC;
}

int reader_live_take(struct gmt_reader *r, int fd, uint64_t size, const struct gmt_live_header *h)
{
	void *memory = reader_memory(NULL, GMT_RING_REGION + 64);
	uint8_t *region = (uint8_t *)(((uintptr_t)memory + 63) & ~(uintptr_t)63);
	void *buf = reader_memory(NULL, GMT_DEF_MAX);
	int rc = memory && buf ? 0 : -GMT_ERR_NO_MEMORY;

	r->info.file_bytes += size;
	if (h->version > GMT_VERSION || h->page != GMT_LIVE_PAGE || h->region != GMT_RING_REGION ||
	    h->slots != GMT_RING_SLOTS || h->slot_bytes != GMT_SLOT_BYTES)
		reader_count_skipped(r, 0, size, true);
	else
		for (uint64_t at = GMT_LIVE_PAGE; at < size && rc == 0; at += GMT_RING_REGION)
			rc = take_region(r, fd, at, region, buf);
	if (rc == 0 && !h->closed && !keep_dropped(r, fd))
		rc = -GMT_ERR_NO_MEMORY;
	r->live.open = !h->closed && h->regions;
	reader_memory(memory, 0);
	reader_memory(buf, 0);
	put_in_order(r);
	return rc;
}

void reader_live_free(struct reader_live *l)
{
	reader_memory(l->events, 0);
	reader_memory(l->defs, 0);
	reader_memory(l->bytes, 0);
}
