/* SPDX-License-Identifier: Apache-2.0
 *
 * Virtual memory management: physical handles, reserved addresses and mappings, kept apart.
 * Physical memory is freed when no handle (imported ones included) and no mapping refers to it.
 * Imports by other processes are not known here. Any thread; under memory_lock.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>
#include "contents.h"
#include "memory.h"

#define PHYS_KIND  SIM_KIND('P', 'H', 'Y', '1')
#define PROP_BYTES 32

enum { ACCESS_NONE = 0, ACCESS_READ_WRITE = 3 };

struct physical {
	size_t bytes;
	int device;
	bool on_host; /* or of another process: not charged to the device */
	unsigned int refs, maps, imports;
	struct physical *origin;	/* the exported handle behind an imported one */
	uint64_t exported;		/* number of its export; 0: none */
	struct physical *next;		/* list of exported handles */
	unsigned char prop[PROP_BYTES]; /* as the caller gave it */
};

/* One 2 MiB page of the reserved stretch. */
struct page {
	struct physical *physical;
	uint32_t first;	 /* number of the page its mapping begins at */
	uint32_t pages;	 /* of the mapping, at its first page */
	uint16_t access; /* bit per device */
};

static struct slots reserved;
static struct page *pages;

static bool prepare(void)
{
	size_t n = vmm_pages();
	void *m;

	if (pages)
		return true;
	m = mmap(NULL, n * sizeof(*pages), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m == MAP_FAILED || !slots_init(&reserved, n))
		return false;
	pages = m;
	return true;
}

/* [addr, addr + bytes) as pages of the stretch; false if it is not all inside. */
static bool span(uintptr_t addr, size_t bytes, size_t *first, size_t *count)
{
	uintptr_t base = vmm_base();

	if (!pages || !bytes || addr % SIM_PAGE || bytes % SIM_PAGE || addr < base)
		return false;
	*first = (addr - base) / SIM_PAGE;
	*count = bytes / SIM_PAGE;
	return *first < reserved.n && *count <= reserved.n - *first;
}

/* ---- physical memory ---- */

int vmm_create(void **handle, size_t bytes, int device, bool on_host, const void *prop)
{
	struct physical *p;
	bool charged;

	if (!handle || !bytes || bytes % SIM_PAGE)
		return SIM_INVALID;
	if (!on_host && (device < 0 || device >= sim_device_count()))
		return SIM_BAD_DEVICE;
	p = sim_handle(PHYS_KIND, sizeof(*p));
	if (!p)
		return SIM_NOMEM;
	*p = (struct physical){ .bytes = bytes, .device = device, .on_host = on_host, .refs = 1 };
	memcpy(p->prop, prop, PROP_BYTES);
	pthread_mutex_lock(&memory_lock);
	charged = on_host || memory_charge(device, bytes) ||
		  (pools_release(device) && memory_charge(device, bytes));
	pthread_mutex_unlock(&memory_lock);
	if (!charged) {
		sim_handle_free(p);
		return SIM_NOMEM;
	}
	*handle = p;
	return SIM_OK;
}

static struct physical *exported;

static void settle(struct physical *p)
{
	while (p && !p->refs && !p->maps && !p->imports) {
		struct physical *origin = p->origin, **q = &exported;

		while (*q && *q != p)
			q = &(*q)->next;
		if (*q)
			*q = p->next;
		if (!p->on_host)
			memory_uncharge(p->device, p->bytes);
		sim_handle_free(p);
		if (origin)
			origin->imports--;
		p = origin;
	}
}

int vmm_release(void *handle)
{
	struct physical *p;
	int result = SIM_INVALID;

	pthread_mutex_lock(&memory_lock);
	p = sim_handle_check(handle, PHYS_KIND);
	if (p && p->refs) {
		p->refs--;
		settle(p);
		result = SIM_OK;
	}
	pthread_mutex_unlock(&memory_lock);
	return result;
}

int vmm_retain(void **handle, uintptr_t addr)
{
	size_t first, count;
	int result = SIM_INVALID;

	pthread_mutex_lock(&memory_lock);
	if (span(addr & ~(SIM_PAGE - 1), SIM_PAGE, &first, &count) && pages[first].physical) {
		pages[first].physical->refs++;
		*handle = pages[first].physical;
		result = SIM_OK;
	}
	pthread_mutex_unlock(&memory_lock);
	return result;
}

const void *vmm_properties(void *handle)
{
	struct physical *p = sim_handle_check(handle, PHYS_KIND);

	return p ? p->prop : NULL;
}

/* ---- addresses ---- */

int vmm_reserve(uintptr_t *addr, size_t bytes, size_t align, uintptr_t hint)
{
	size_t at, first, count;
	bool placed = false;

	if (!addr || !bytes || bytes % SIM_PAGE || (align & (align - 1)))
		return SIM_INVALID;
	pthread_mutex_lock(&memory_lock);
	if (!prepare()) {
		pthread_mutex_unlock(&memory_lock);
		return SIM_NOMEM;
	}
	if (hint && span(hint, bytes, &first, &count))
		placed = slots_take_at(&reserved, at = first, count, bytes);
	if (!placed)
		at = slots_take(&reserved, bytes / SIM_PAGE,
				align > SIM_PAGE ? align / SIM_PAGE : 1, bytes);
	pthread_mutex_unlock(&memory_lock);
	if (at == SLOTS_NONE)
		return SIM_NOMEM;
	*addr = vmm_base() + at * SIM_PAGE;
	return SIM_OK;
}

int vmm_unreserve(uintptr_t addr, size_t bytes)
{
	size_t first, count;
	int result = SIM_INVALID;

	pthread_mutex_lock(&memory_lock);
	if (span(addr, bytes, &first, &count) && slots_find(&reserved, first) == first &&
	    reserved.count[first] == count) {
		result = SIM_OK;
		for (size_t i = 0; i < count && !result; i++)
			if (pages[first + i].physical)
				result = SIM_INVALID;
		if (!result)
			slots_give(&reserved, first);
	}
	pthread_mutex_unlock(&memory_lock);
	return result;
}

/* ---- mappings ---- */

static bool all_free(size_t first, size_t count)
{
	size_t block = slots_find(&reserved, first);

	if (block == SLOTS_NONE || first + count > block + reserved.count[block])
		return false;
	for (size_t i = 0; i < count; i++)
		if (pages[first + i].physical)
			return false;
	return true;
}

int vmm_map(uintptr_t addr, size_t bytes, size_t offset, void *handle)
{
	size_t first, count;
	struct physical *p;
	int result = SIM_INVALID;

	pthread_mutex_lock(&memory_lock);
	p = sim_handle_check(handle, PHYS_KIND);
	if (p && !offset && bytes <= p->bytes && span(addr, bytes, &first, &count) &&
	    all_free(first, count)) {
		for (size_t i = 0; i < count; i++)
			pages[first + i] =
				(struct page){ p, (uint32_t)first, i ? 0 : (uint32_t)count, 0 };
		p->maps++;
		result = SIM_OK;
	}
	pthread_mutex_unlock(&memory_lock);
	return result;
}

/* Whether the pages are whole mappings, any number of them in a row. */
static bool whole(size_t first, size_t count)
{
	for (size_t i = first; i < first + count; i += pages[i].pages)
		if (!pages[i].physical || pages[i].first != i || i + pages[i].pages > first + count)
			return false;
	return true;
}

int vmm_unmap(uintptr_t addr, size_t bytes)
{
	size_t first, count;
	int result = SIM_INVALID;

	pthread_mutex_lock(&memory_lock);
	if (span(addr, bytes, &first, &count) && whole(first, count)) {
		contents_drop(addr, bytes);
		for (size_t i = first; i < first + count; i++) {
			struct physical *p = pages[i].physical;
			bool begins = pages[i].first == i;

			pages[i] = (struct page){ 0 };
			if (begins) {
				p->maps--;
				settle(p);
			}
		}
		result = SIM_OK;
	}
	pthread_mutex_unlock(&memory_lock);
	return result;
}

int vmm_set_access(uintptr_t addr, size_t bytes, int device, int access)
{
	size_t first, count;
	int result = SIM_INVALID;

	if (device < 0 || device >= sim_device_count())
		return SIM_BAD_DEVICE;
	pthread_mutex_lock(&memory_lock);
	if (span(addr, bytes, &first, &count)) {
		result = SIM_OK;
		for (size_t i = first; i < first + count && !result; i++)
			if (!pages[i].physical)
				result = SIM_INVALID;
		for (size_t i = first; i < first + count && !result; i++) {
			if (access)
				pages[i].access |= 1 << device;
			else
				pages[i].access &= ~(1 << device);
		}
	}
	pthread_mutex_unlock(&memory_lock);
	return result;
}

int vmm_get_access(uintptr_t addr, int device, int *access)
{
	size_t first, count;
	int result = SIM_INVALID;

	pthread_mutex_lock(&memory_lock);
	if (span(addr & ~(SIM_PAGE - 1), SIM_PAGE, &first, &count) && pages[first].physical) {
		*access = pages[first].access >> device & 1 ? ACCESS_READ_WRITE : ACCESS_NONE;
		result = SIM_OK;
	}
	pthread_mutex_unlock(&memory_lock);
	return result;
}

bool vmm_mapping(uintptr_t addr, struct block *out)
{
	size_t page = (addr - vmm_base()) / SIM_PAGE, first;

	if (!pages || page >= reserved.n || !pages[page].physical)
		return false;
	first = pages[page].first;
	*out = (struct block){ vmm_base() + first * SIM_PAGE, pages[first].pages * SIM_PAGE,
			       pages[page].physical->device, 0, NULL };
	return true;
}

/* ---- sharing: the descriptor is a file that names the memory and its properties ---- */

struct shared {
	uint64_t key, number; /* of the process, and its export */
	size_t bytes;
	int device;
	bool on_host;
	unsigned char prop[PROP_BYTES];
};

/* A number that no other process has. */
static uint64_t process_key(void)
{
	static uint64_t key;

	while (!key)
		if (getrandom(&key, sizeof(key), GRND_NONBLOCK) != sizeof(key))
			key = (uint64_t)getpid();
	return key;
}

static uint64_t export_number(struct physical *p)
{
	static uint64_t last;

	if (!p->exported) {
		p->exported = ++last;
		p->next = exported;
		exported = p;
	}
	return p->exported;
}

int vmm_share(int *fd, void *handle)
{
	struct shared s = { 0 };
	struct physical *p;

	pthread_mutex_lock(&memory_lock);
	p = sim_handle_check(handle, PHYS_KIND);
	if (p && fd) {
		p = p->origin ? p->origin : p;
		s = (struct shared){ .key = process_key(),
				     .number = export_number(p),
				     .bytes = p->bytes,
				     .device = p->device,
				     .on_host = p->on_host };
		memcpy(s.prop, p->prop, PROP_BYTES);
	}
	pthread_mutex_unlock(&memory_lock);
	if (!p || !fd)
		return SIM_INVALID;
	*fd = memfd_create("simgpu", MFD_CLOEXEC);
	if (*fd < 0)
		return SIM_UNSUPPORTED;
	return pwrite(*fd, &s, sizeof(s), 0) == sizeof(s) ? SIM_OK : SIM_UNSUPPORTED;
}

/* A handle that this process exported is the same memory. If it no longer exists, only the
 * descriptor has kept the memory, which is charged again; false if there is no room. Memory of
 * another process is charged there. */
static bool bind_import(struct physical *p, const struct shared *s)
{
	if (s->key != process_key() || s->on_host)
		return true;
	for (struct physical *o = exported; o && !p->origin; o = o->next)
		if (o->exported == s->number)
			p->origin = o;
	if (p->origin)
		p->origin->imports++;
	else if (memory_charge(p->device, p->bytes))
		p->on_host = false;
	else
		return false;
	return true;
}

int vmm_import(void **handle, int fd)
{
	struct physical *p;
	struct shared s;
	bool bound;

	if (!handle || pread(fd, &s, sizeof(s), 0) != sizeof(s))
		return SIM_INVALID;
	p = sim_handle(PHYS_KIND, sizeof(*p));
	if (!p)
		return SIM_NOMEM;
	*p = (struct physical){ .bytes = s.bytes, .device = s.device, .on_host = true, .refs = 1 };
	memcpy(p->prop, s.prop, PROP_BYTES);
	pthread_mutex_lock(&memory_lock);
	bound = bind_import(p, &s);
	pthread_mutex_unlock(&memory_lock);
	if (!bound) {
		sim_handle_free(p);
		return SIM_NOMEM;
	}
	*handle = p;
	return SIM_OK;
}
