/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regions of the live file. live_take and live_give run on application threads: they may ask the
 * kernel for room once in a ring's life, and never wait for another thread. Room is allocated
 * before it is touched, because a full disk would otherwise be a SIGBUS in someone's training run.
 */
#include "live.h"

#include "../../format/block.h"
#include "../../format/version.h"
#include "../base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

static struct {
	uint8_t *base; /* header page, then the regions */
	uint8_t *ready;
	uint32_t most;
	uint32_t next;	  /* regions ever claimed; may exceed most */
	uint32_t growing; /* threads that ask the disk for room at this moment */
	int fd;
	dev_t dev;
	ino_t ino;
} live = { .fd = -1 };

static uint64_t region_offset(uint32_t i)
{
	return GMT_LIVE_PAGE + (uint64_t)i * GMT_RING_REGION;
}

static void *map_regions(int fd, uint32_t regions)
{
	int flags = fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
	void *p = mmap(NULL, region_offset(regions), PROT_READ | PROT_WRITE, flags | MAP_NORESERVE,
		       fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* The program may have closed our descriptor, and another file may have its number by now. */
static bool still_ours(void)
{
	struct stat st;

	return !fstat(live.fd, &st) && st.st_dev == live.dev && st.st_ino == live.ino;
}

/* Whether the disk has that much for each thread that asks at this moment. A request that fails
 * would take all that is left until it does, and the recording could not be written meanwhile. */
static bool disk_has(uint64_t bytes, uint32_t threads)
{
	struct statvfs s;

	if (fstatvfs(live.fd, &s) || !s.f_blocks || s.f_bavail * s.f_frsize >= bytes * threads)
		return true;
	errno = ENOSPC;
	return false;
}

static bool grow(uint64_t offset, uint64_t bytes)
{
	int rc;

	do {
		rc = fallocate(live.fd, 0, (off_t)offset, (off_t)bytes);
	} while (rc && errno == EINTR);
	if (!rc)
		return true;
	if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL)
		return false;
	return os_write_zeros(live.fd, (off_t)offset, bytes);
}

static bool make_room(uint64_t offset, uint64_t bytes)
{
	bool ok;

	if (live.fd < 0)
		return true;
	if (!os_may_grow_to(offset + bytes) || !still_ours())
		return false;
	ok = disk_has(bytes, __atomic_add_fetch(&live.growing, 1, __ATOMIC_SEQ_CST)) &&
	     grow(offset, bytes);
	__atomic_sub_fetch(&live.growing, 1, __ATOMIC_SEQ_CST);
	return ok;
}

static void write_header(const struct gmt_writer_info *info)
{
	struct gmt_live_header *h = (struct gmt_live_header *)live.base;

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

static uint32_t map_most(int fd)
{
	uint32_t most = LIVE_RINGS_MAX;

	while (!(live.base = map_regions(fd, most)) && most > 16)
		most /= 4;
	return most;
}

bool live_open(int fd, const struct gmt_writer_info *info)
{
	struct stat st = { 0 };
	uint32_t most = map_most(fd);

	if (!live.base && fd >= 0 && (errno == ENODEV || errno == EINVAL)) {
		fd = -1; /* a file system without shared mappings */
		most = map_most(fd);
	}
	live.ready = os_map(LIVE_RINGS_MAX);
	if (!live.base || !live.ready || (fd >= 0 && fstat(fd, &st)))
		return false;
	live.fd = fd;
	live.dev = st.st_dev;
	live.ino = st.st_ino;
	live.most = most;
	live.next = 0;
	if (!make_room(0, region_offset(1)))
		return false;
	write_header(info);
	return true;
}

bool live_is_shared(void)
{
	return live.fd >= 0;
}

uint64_t live_bytes(void)
{
	return region_offset(live_count());
}

struct gmt_control *live_control(void)
{
	return gmt_control_of(live.base);
}

uint32_t live_count(void)
{
	uint32_t n = __atomic_load_n(&live.next, __ATOMIC_ACQUIRE);

	return n < live.most ? n : live.most;
}

struct gmt_ring *live_ring(uint32_t i)
{
	if (!__atomic_load_n(&live.ready[i], __ATOMIC_ACQUIRE))
		return NULL;
	return (struct gmt_ring *)(live.base + region_offset(i));
}

static bool has_room(const struct gmt_ring *r)
{
	return gmt_ring_used(r) <= GMT_RING_SLOTS / 4;
}

/* Between the look at it and the taking another thread may have had it, filled it and given it
 * back: only its owner knows that it has room. */
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
	struct gmt_live_header *h = (struct gmt_live_header *)live.base;
	uint32_t seen = __atomic_load_n(&h->regions, __ATOMIC_RELAXED);

	while (seen < n && !__atomic_compare_exchange_n(&h->regions, &seen, n, false,
							__ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

static struct gmt_ring *take_new(uint32_t thread)
{
	uint32_t i = __atomic_load_n(&live.next, __ATOMIC_RELAXED);
	struct gmt_ring *r;

	if (i >= live.most)
		return NULL;
	i = __atomic_fetch_add(&live.next, 1, __ATOMIC_ACQ_REL);
	if (i >= live.most || !make_room(region_offset(i), GMT_RING_REGION))
		return NULL;
	r = (struct gmt_ring *)(live.base + region_offset(i));
	gmt_ring_init(r, thread);
	__atomic_store_n(&r->state, GMT_RING_OWNED, __ATOMIC_RELAXED);
	publish_count(i + 1);
	__atomic_store_n(&live.ready[i], 1, __ATOMIC_RELEASE);
	return r;
}

struct gmt_ring *live_take(uint32_t thread)
{
	struct gmt_ring *r = take_used(thread);

	return r ? r : take_new(thread);
}

void live_give(struct gmt_ring *r)
{
	__atomic_store_n(&r->state, GMT_RING_ORPHAN, __ATOMIC_RELEASE);
}

void live_close(void)
{
	__atomic_store_n(&((struct gmt_live_header *)live.base)->closed, 1, __ATOMIC_RELEASE);
}

void live_forget(void)
{
	if (live.base)
		munmap(live.base, region_offset(live.most));
	os_unmap(live.ready, LIVE_RINGS_MAX);
	memset(&live, 0, sizeof(live));
	live.fd = -1;
}
