/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regions of the live file. live_take and live_give run on application threads: they ask the kernel
 * for room at most once in a ring's life, and never wait for another thread. Room is allocated
 * before it is touched, because a full disk would otherwise be a SIGBUS in someone's training run.
 * Each region is mapped by itself, because the program might limit its address space.
 *
 * Before the file exists, and if it cannot be mapped, rings are only in this process's memory.
 */
#include "live.h"

#include "../../format/block.h"
#include "../../format/version.h"
#include "../base/os.h"
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>

#define REGIONS_MOST 4096u	   /* in the file */
#define FAR	     0x80000000ull /* a tail this far behind the head: the ring is full for ever */

static struct {
	struct gmt_live_header *head; /* NULL before live_share */
	struct gmt_ring **rings;      /* by number; NULL: not (yet) usable */
	uint8_t *is_own;	      /* the ring is not in the file */
	uint32_t next;		      /* rings ever made */
	uint32_t regions;	      /* of the file, claimed so far */
	uint32_t growing;	      /* threads that ask the disk for room at this moment */
	const struct file *file;      /* new rings go into it; NULL: into memory */
	bool was_cut;		      /* the file was truncated */
} live;

static uint64_t region_offset(uint32_t i)
{
	return GMT_LIVE_PAGE + (uint64_t)i * GMT_RING_REGION;
}

static void *map(const struct file *f, uint64_t offset, size_t bytes)
{
	int flags = f ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	void *p = MAP_FAILED;

	if (os_may(OS_MEMORY))
		p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, f ? f->fd : -1,
			 f ? (off_t)offset : 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Whether the disk has this room for each thread that asks at the moment, and as much as the live
 * file takes for the recording itself. A request that fails would first take all the room that is
 * left, so that the recording could not be written meanwhile. */
static bool disk_has(const struct file *f, uint64_t bytes, uint32_t threads)
{
	struct statvfs s;

	if (fstatvfs(f->fd, &s) || !s.f_blocks ||
	    s.f_bavail * s.f_frsize >= bytes * threads + live_bytes())
		return true;
	errno = ENOSPC;
	return false;
}

static bool grow(const struct file *f, uint64_t offset, uint64_t bytes)
{
	int rc;

	do {
		rc = fallocate(f->fd, 0, (off_t)offset, (off_t)bytes);
	} while (rc && errno == EINTR);
	if (!rc)
		return true;
	if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL)
		return false;
	return os_write_zeros(f->fd, (off_t)offset, bytes);
}

/* Checks the descriptor first: the program might have closed it, and reused its number. */
static bool make_room(const struct file *f, uint64_t offset, uint64_t bytes)
{
	bool ok;

	if (!os_may_grow_to(offset + bytes) || !file_is(f->fd, &f->id))
		return false;
	if (offset == region_offset(0))
		return true; /* made by live_share */
	ok = disk_has(f, bytes, __atomic_add_fetch(&live.growing, 1, __ATOMIC_SEQ_CST)) &&
	     grow(f, offset, bytes);
	__atomic_sub_fetch(&live.growing, 1, __ATOMIC_SEQ_CST);
	return ok;
}

bool live_begin(void)
{
	live.rings = os_map(LIVE_RINGS_MAX * sizeof(*live.rings));
	live.is_own = os_map(LIVE_RINGS_MAX);
	return live.rings && live.is_own;
}

static void write_header(const struct gmt_writer_info *info)
{
	struct gmt_live_header *h = live.head;

	h->version = GMT_VERSION;
	h->pid = info->pid;
	h->page = GMT_LIVE_PAGE;
	h->region = GMT_RING_REGION;
	h->slots = GMT_RING_SLOTS;
	h->slot_bytes = GMT_SLOT_BYTES;
	h->realtime_minus_monotonic_ns = info->realtime_minus_monotonic_ns;
	h->origin = (struct gmt_origin){ info->start, GMT_TOOL_VERSION };
	__atomic_store_n(&h->magic, GMT_LIVE_MAGIC, __ATOMIC_RELEASE);
}

/* Counts the events that are only in memory as dropped, until the drain has written them. */
static void count_unsafe(void)
{
	__atomic_store_n(&live_control()->dropped,
			 __atomic_load_n(&gmt_session.seq, __ATOMIC_SEQ_CST), __ATOMIC_RELAXED);
}

bool live_share(const struct file *f, const struct gmt_writer_info *info)
{
	if (f && !make_room(f, 0, region_offset(1)))
		return false;
	live.head = map(f, 0, GMT_LIVE_PAGE);
	if (!live.head && f && (errno == ENODEV || errno == EINVAL)) {
		f = NULL; /* a file system without shared mappings */
		live.head = map(NULL, 0, GMT_LIVE_PAGE);
	}
	if (!live.head)
		return false;
	count_unsafe();
	write_header(info);
	__atomic_store_n(&live.file, f, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; f && i < live_count(); i++)
		if (live_ring(i) && live.is_own[i])
			live_leave(live_ring(i));
	count_unsafe();
	return true;
}

bool live_is_shared(void)
{
	return __atomic_load_n(&live.file, __ATOMIC_RELAXED) != NULL;
}

bool live_was_cut(void)
{
	return __atomic_load_n(&live.was_cut, __ATOMIC_RELAXED);
}

uint64_t live_bytes(void)
{
	uint32_t n = __atomic_load_n(&live.regions, __ATOMIC_RELAXED);

	return region_offset(n < REGIONS_MOST ? n : REGIONS_MOST);
}

struct gmt_control *live_control(void)
{
	return gmt_control_of(live.head);
}

uint32_t live_count(void)
{
	uint32_t n = __atomic_load_n(&live.next, __ATOMIC_ACQUIRE);

	return n < LIVE_RINGS_MAX ? n : LIVE_RINGS_MAX;
}

struct gmt_ring *live_ring(uint32_t i)
{
	return __atomic_load_n(&live.rings[i], __ATOMIC_ACQUIRE);
}

void live_leave(struct gmt_ring *r)
{
	gmt_store_release(&r->tail, gmt_load_acquire(&r->head) - FAR);
}

bool live_is_left(const struct gmt_ring *r)
{
	return gmt_ring_used(r) >= FAR / 2;
}

static bool has_room(const struct gmt_ring *r)
{
	return gmt_ring_used(r) <= GMT_RING_SLOTS / 4;
}

/* Looks for room again after taking it: another thread might have filled and released it. */
static bool take(struct gmt_ring *r, uint32_t thread)
{
	uint32_t state = __atomic_load_n(&r->state, __ATOMIC_RELAXED);

	if (state == GMT_RING_OWNED || !has_room(r) ||
	    !__atomic_compare_exchange_n(&r->state, &state, GMT_RING_OWNED, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return false;
	if (!has_room(r)) {
		live_give(r);
		return false;
	}
	__atomic_store_n(&r->thread, thread, __ATOMIC_RELAXED);
	return true;
}

/* A ring whose thread is gone: the new owner goes on where the old one stopped. */
static struct gmt_ring *take_used(uint32_t thread)
{
	for (uint32_t i = 0, n = live_count(); i < n; i++) {
		struct gmt_ring *r = live_ring(i);

		if (r && take(r, thread))
			return r;
	}
	return NULL;
}

static void publish_count(uint32_t n)
{
	struct gmt_live_header *h = live.head;
	uint32_t seen = __atomic_load_n(&h->regions, __ATOMIC_RELAXED);

	while (seen < n && !__atomic_compare_exchange_n(&h->regions, &seen, n, false,
							__ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

/* A region that cannot be made stays empty, unless it is the last one. */
static struct gmt_ring *map_in_file(const struct file *f, uint32_t thread)
{
	uint32_t i = __atomic_fetch_add(&live.regions, 1, __ATOMIC_ACQ_REL), after = i + 1;
	struct gmt_ring *r = NULL;

	if (i < REGIONS_MOST && make_room(f, region_offset(i), GMT_RING_REGION))
		r = map(f, region_offset(i), GMT_RING_REGION);
	if (!r) {
		__atomic_compare_exchange_n(&live.regions, &after, i, false, __ATOMIC_ACQ_REL,
					    __ATOMIC_RELAXED);
		return NULL;
	}
	gmt_ring_init(r, thread);
	publish_count(i + 1);
	return r;
}

static struct gmt_ring *map_own(uint32_t thread)
{
	struct gmt_ring *r = map(NULL, 0, GMT_RING_REGION);

	if (r)
		gmt_ring_init(r, thread);
	return r;
}

static struct gmt_ring *take_new(uint32_t thread)
{
	const struct file *f = __atomic_load_n(&live.file, __ATOMIC_SEQ_CST);
	struct gmt_ring *r;
	uint32_t i;

	if (__atomic_load_n(&live.next, __ATOMIC_RELAXED) >= LIVE_RINGS_MAX)
		return NULL;
	r = f && os_may(OS_FILES) ? map_in_file(f, thread) : map_own(thread);
	i = r ? __atomic_fetch_add(&live.next, 1, __ATOMIC_ACQ_REL) : LIVE_RINGS_MAX;
	if (i >= LIVE_RINGS_MAX) {
		if (r)
			munmap(r, GMT_RING_REGION);
		return NULL;
	}
	live.is_own[i] = !f || !os_may(OS_FILES);
	__atomic_store_n(&live.rings[i], r, __ATOMIC_RELEASE);
	/* the file came in between: live_share did not see this ring */
	if (!f && __atomic_load_n(&live.file, __ATOMIC_SEQ_CST))
		live_leave(r);
	return r;
}

struct gmt_ring *live_take(uint32_t thread)
{
	struct gmt_ring *r = take_used(thread);
	struct os_calm calm;

	if (r)
		return r;
	os_calm_begin(&calm);
	r = take_new(thread);
	os_calm_end(&calm);
	return r;
}

void live_give(struct gmt_ring *r)
{
	__atomic_store_n(&r->state, GMT_RING_ORPHAN, __ATOMIC_RELEASE);
}

/* In a handler of SIGBUS. The contents of the pages are lost, and the ring is abandoned. A thread
 * that writes into it at this moment writes into memory that is never read. */
static bool mend(void *start, size_t bytes, uintptr_t address)
{
	if (!start || address - (uintptr_t)start >= bytes ||
	    mmap(start, bytes, PROT_READ | PROT_WRITE,
		 MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED)
		return false;
	__atomic_store_n(&live.file, NULL, __ATOMIC_SEQ_CST);
	__atomic_store_n(&live.was_cut, true, __ATOMIC_RELAXED);
	return true;
}

bool live_mend(uintptr_t address)
{
	if (!live.rings)
		return false;
	for (uint32_t i = 0, n = live_count(); i < n; i++) {
		struct gmt_ring *r = live_ring(i);

		if (r && !live.is_own[i] && mend(r, GMT_RING_REGION, address)) {
			r->state = GMT_RING_OWNED;
			live_leave(r);
			return true;
		}
	}
	return mend(live.head, GMT_LIVE_PAGE, address);
}

void live_close(void)
{
	__atomic_store_n(&live.head->closed, 1, __ATOMIC_RELEASE);
}

void live_forget(void)
{
	for (uint32_t i = 0, n = live.rings ? live_count() : 0; i < n; i++)
		if (live.rings[i])
			munmap(live.rings[i], GMT_RING_REGION);
	if (live.head)
		munmap(live.head, GMT_LIVE_PAGE);
	os_unmap(live.rings, LIVE_RINGS_MAX * sizeof(*live.rings));
	os_unmap(live.is_own, LIVE_RINGS_MAX);
	memset(&live, 0, sizeof(live));
}
