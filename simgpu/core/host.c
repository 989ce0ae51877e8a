/* SPDX-License-Identifier: Apache-2.0
 *
 * Host memory known to the device: pinned, registered and managed ranges, sorted by address. All of
 * these ranges are real memory. Managed memory also takes room on the device, as if kernels had
 * touched all of it, until another allocation needs the room or the program prefers it on the host.
 * Large zeros that are copied to the host take no memory there until they are written to. Any
 * thread; one lock, inside memory_lock.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "devices.h"
#include "memory.h"

#define PAGE		((size_t)4096)
#define UNTOUCHED_LEAST ((size_t)1 << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct host_range *ranges;
static size_t n, room;

/* The first range that ends after an address. */
static size_t range_index(uintptr_t addr)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (ranges[mid].base + ranges[mid].bytes <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int insert(struct host_range r)
{
	size_t at = range_index(r.base);

	if (at < n && ranges[at].base < r.base + r.bytes)
		return ERR_HOST_REGISTERED;
	if (n == room) {
		size_t more = room ? 2 * room : 256;
		struct host_range *grown = realloc(ranges, more * sizeof(*ranges));

		if (!grown)
			return SIM_NOMEM;
		ranges = grown;
		room = more;
	}
	memmove(ranges + at + 1, ranges + at, (n - at) * sizeof(*ranges));
	ranges[at] = r;
	n++;
	return SIM_OK;
}

static int add_range(struct host_range r)
{
	int result;

	pthread_mutex_lock(&lock);
	result = insert(r);
	pthread_mutex_unlock(&lock);
	return result;
}

/* Removes the range of that kind that begins exactly here. */
static bool range_remove(uintptr_t base, enum host_kind kind, struct host_range *out)
{
	bool found = false;
	size_t at;

	pthread_mutex_lock(&lock);
	at = range_index(base);
	if (at < n && ranges[at].base == base && ranges[at].kind == kind) {
		*out = ranges[at];
		memmove(ranges + at, ranges + at + 1, (--n - at) * sizeof(*ranges));
		found = true;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

static size_t charge_managed(int device, size_t bytes)
{
	size_t charged = 0;

	pthread_mutex_lock(&memory_lock);
	if (memory_charge(device, bytes))
		charged = bytes;
	pthread_mutex_unlock(&memory_lock);
	return charged;
}

int host_alloc(void **ptr, size_t bytes, unsigned int flags, enum host_kind kind)
{
	size_t length = (bytes + PAGE - 1) & ~(PAGE - 1);
	struct host_range r = { 0, bytes, kind, flags, sim_device(), ctx_owner(sim_device()), 0 };
	void *m;
	int result;

	if (!ptr)
		return SIM_INVALID;
	*ptr = NULL;
	if (!bytes)
		return kind == HOST_MANAGED ? SIM_INVALID : SIM_OK;
	if (length < bytes)
		return SIM_NOMEM;
	m = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		 -1, 0);
	if (m == MAP_FAILED)
		return SIM_NOMEM;
	r.base = (uintptr_t)m;
	if (kind == HOST_MANAGED)
		r.charged = charge_managed(r.device, sim_whole_pages(bytes));
	result = add_range(r);
	if (result)
		munmap(m, length);
	else
		*ptr = m;
	return result;
}

static void give_back(const struct host_range *r)
{
	if (r->charged) {
		pthread_mutex_lock(&memory_lock);
		memory_uncharge(r->device, r->charged);
		pthread_mutex_unlock(&memory_lock);
	}
	munmap((void *)r->base, (r->bytes + PAGE - 1) & ~(PAGE - 1));
}

int host_free(void *ptr, enum host_kind kind)
{
	struct host_range r;

	if (!range_remove((uintptr_t)ptr, kind, &r))
		return SIM_INVALID;
	give_back(&r);
	return SIM_OK;
}

static bool take_owned(uint32_t owner, struct host_range *out)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (size_t at = 0; at < n && !found; at++)
		if (ranges[at].owner == owner) {
			*out = ranges[at];
			memmove(ranges + at, ranges + at + 1, (--n - at) * sizeof(*ranges));
			found = true;
		}
	pthread_mutex_unlock(&lock);
	return found;
}

void host_end(uint32_t owner)
{
	struct host_range r;

	while (take_owned(owner, &r))
		if (r.kind != HOST_REGISTERED)
			give_back(&r);
}

bool host_evict(int device, uintptr_t only)
{
	size_t bytes = 0;

	pthread_mutex_lock(&lock);
	for (struct host_range *r = ranges; r < ranges + n; r++) {
		if (r->device != device || (only && r->base != only))
			continue;
		bytes += r->charged;
		r->charged = 0;
	}
	pthread_mutex_unlock(&lock);
	if (bytes)
		memory_uncharge(device, bytes);
	return bytes;
}

void host_prefer(const void *ptr)
{
	struct host_range r;

	if (!host_find(ptr, &r))
		return;
	pthread_mutex_lock(&memory_lock);
	host_evict(r.device, r.base);
	pthread_mutex_unlock(&memory_lock);
}

int host_register(void *ptr, size_t bytes, unsigned int flags)
{
	if (!ptr || !bytes)
		return SIM_INVALID;
	return add_range((struct host_range){ (uintptr_t)ptr, bytes, HOST_REGISTERED, flags,
					      sim_device(), ctx_owner(sim_device()), 0 });
}

int host_unregister(void *ptr)
{
	struct host_range r;

	return range_remove((uintptr_t)ptr, HOST_REGISTERED, &r) ? SIM_OK : ERR_HOST_NOT_REGISTERED;
}

bool host_find(const void *ptr, struct host_range *out)
{
	bool found;
	size_t at;

	pthread_mutex_lock(&lock);
	at = range_index((uintptr_t)ptr);
	found = at < n && ranges[at].base <= (uintptr_t)ptr;
	if (found)
		*out = ranges[at];
	pthread_mutex_unlock(&lock);
	return found;
}

/* ---- zeros ---- */

/* Whether the range lies in one private mapping without a file, whose dropped pages read as
 * zero. */
static bool is_anonymous(uintptr_t from, uintptr_t to)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long begin, end, inode;
	bool found = false;
	char private, line[512];

	while (maps && !found && fgets(line, sizeof(line), maps))
		found = sscanf(line, "%lx-%lx %*c%*c%*c%c %*x %*s %lu", &begin, &end, &private,
			       &inode) == 4 &&
			begin <= from && to <= end && private == 'p' && !inode;
	if (maps)
		fclose(maps);
	return found;
}

void host_zero(void *dst, size_t bytes)
{
	uintptr_t at = (uintptr_t)dst, from = (at + PAGE - 1) & ~(PAGE - 1);
	uintptr_t to = (at + bytes) & ~(PAGE - 1);

	if (bytes < UNTOUCHED_LEAST || !is_anonymous(from, to) ||
	    madvise((void *)from, to - from, MADV_DONTNEED)) {
		memset(dst, 0, bytes);
		return;
	}
	memset(dst, 0, from - at);
	memset((void *)to, 0, at + bytes - to);
}
