/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is called for whom. Objects that were loaded behind us at the start of the process are in
 * everybody's scope: the simulated device, other interposers. After them comes the libcudart that
 * the caller was linked with (several may be loaded, of several versions), then any.
 *
 * Application threads, any lock held. Tables only grow and are filled by compare-and-swap; what is
 * found twice is the same.
 */
#include "resolve.h"

#include "../base/elfsym.h"
#include "../base/forkgate.h"
#include "../base/os.h"

#include <string.h>

#define CALLERS_MAX 256
#define WORLDS_MAX  8
#define RETRY_NS    100000000ull
#define GONE	    1 /* in place of an address: forgotten */

struct world {
	uintptr_t base; /* of its libcudart; 0 = whichever there is */
	void *real[RUNTIME_FUNCTIONS];
};

enum rank { RANK_NONE, RANK_ANY, RANK_NAMED, RANK_START };

struct search {
	const char *name;
	const char *soname; /* the library's, or how it begins */
	uintptr_t base;	    /* only this library of that name; 0 = any */
	bool behind;	    /* only the objects of the start */
	int index, ours;
	enum rank best;
	void *found;
};

struct range {
	uintptr_t low, high;
};

struct entry {
	uintptr_t low, high;
	struct caller caller;
};

struct where {
	uintptr_t address, base;
	struct range range;
	const char *needs; /* name of the libcudart it was linked with */
	bool framework;
};

static const char *const runtime_names[] = {
#define RUNTIME(name, proto, args, effect) [RUNTIME_##name] = #name,
#define USES_RUNTIME(name, proto)	   [RUNTIME_##name] = #name,
#include "../hooks.def"
};

static const char *const driver_names[] = {
#define DRIVER(symbol, base, version, per_thread, proto, args, effect) [DRIVER_##symbol] = #symbol,
#define USES_DRIVER(symbol, proto)				       [DRIVER_##symbol] = #symbol,
#include "../hooks.def"
};

static struct world worlds[WORLDS_MAX]; /* the first is the one of base 0 */
static uint32_t world_count = 1;
static struct entry callers[CALLERS_MAX];
static uint32_t caller_count;
static const struct caller unknown_caller = { &worlds[0], false };
static void *driver_real[DRIVER_FUNCTIONS];
static uint64_t driver_missed[DRIVER_FUNCTIONS];
static int start_count; /* objects that were there at the start */
static bool unloaded;	/* since the last look */

static int count_one(struct dl_phdr_info *info, size_t size, void *ctx)
{
	(void)info;
	(void)size;
	++*(int *)ctx;
	return 0;
}

__attribute__((constructor)) static void resolve_load(void)
{
	int n = 0;

	if (!start_count)
		forkgate_objects(count_one, &n);
	start_count += n;
}

bool resolve_is_ours(const void *address)
{
	extern const char __ehdr_start[] __attribute__((visibility("hidden")));
	extern const char _end[] __attribute__((visibility("hidden")));

	return (const char *)address >= __ehdr_start && (const char *)address < _end;
}

static enum rank rank_of(const struct search *s, const struct dl_phdr_info *info)
{
	const char *soname = s->soname ? elfsym_entry(info, DT_SONAME, s->soname) : NULL;
	bool other = soname && s->base && info->dlpi_addr != s->base;

	if (s->ours && s->index < start_count && !other)
		return RANK_START;
	if (s->behind || other)
		return RANK_NONE;
	if (soname)
		return RANK_NAMED;
	return s->ours && !s->base ? RANK_ANY : RANK_NONE;
}

static int look_at(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct search *s = ctx;
	enum rank rank = rank_of(s, info);
	void *p;

	(void)size;
	s->index++;
	if (elfsym_holds(info, (uintptr_t)&resolve_load)) {
		s->ours = s->index;
		return 0;
	}
	if (rank <= s->best)
		return 0;
	p = elfsym_in(info, s->name);
	if (p) {
		s->best = rank;
		s->found = p;
	}
	return s->best == RANK_START;
}

static void *search_for(struct search s)
{
	if (!start_count)
		resolve_load();
	forkgate_objects(look_at, &s);
	return s.found;
}

void *resolve_next(const char *name)
{
	return search_for((struct search){ .name = name, .behind = true });
}

/* ---- objects ---- */

static struct range range_of(const struct dl_phdr_info *info)
{
	struct range r = { UINTPTR_MAX, 0 };

	for (int i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
		uintptr_t end = start + info->dlpi_phdr[i].p_memsz;

		if (info->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		r.low = start < r.low ? start : r.low;
		r.high = end > r.high ? end : r.high;
	}
	return r;
}

static int is_there(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct where *w = ctx;

	(void)size;
	if (!elfsym_holds(info, w->address))
		return 0;
	w->base = info->dlpi_addr;
	w->range = range_of(info);
	w->needs = elfsym_entry(info, DT_NEEDED, "libcudart.so");
	w->framework = elfsym_entry(info, DT_SONAME, "libc10_cuda.so") != NULL;
	return 1;
}

bool resolve_same_object(const void *a, const void *b)
{
	struct where w = { .address = (uintptr_t)a };

	return forkgate_objects(is_there, &w) && (uintptr_t)b >= w.range.low &&
	       (uintptr_t)b < w.range.high;
}

static int is_library(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct where *w = ctx;
	const char *soname = elfsym_entry(info, DT_SONAME, w->needs);

	(void)size;
	if (!soname || strcmp(soname, w->needs))
		return 0;
	w->base = info->dlpi_addr;
	return 1;
}

/*
 * ---- objects that were unloaded: others may stand in their place ----
 *
 * What was found is found anew. The driver's functions are kept where they cannot be another's: in
 * a libcuda, and in the objects of the start, which stay.
 */

struct alive {
	int index;
	bool driver[DRIVER_FUNCTIONS];
};

static int note_alive(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct range r = range_of(info);
	struct alive *a = ctx;

	(void)size;
	if (a->index++ >= start_count && !elfsym_entry(info, DT_SONAME, "libcuda.so"))
		return 0;
	for (int f = 0; f < DRIVER_FUNCTIONS; f++)
		a->driver[f] |=
			(uintptr_t)driver_real[f] >= r.low && (uintptr_t)driver_real[f] < r.high;
	return 0;
}

static void forget(const struct alive *a)
{
	for (int c = 0; c < CALLERS_MAX; c++) {
		if (!__atomic_exchange_n(&callers[c].high, 0, __ATOMIC_SEQ_CST))
			continue;
		__atomic_store_n(&callers[c].low, GONE, __ATOMIC_SEQ_CST);
	}
	for (int w = 0; w < WORLDS_MAX; w++)
		for (int f = 0; f < RUNTIME_FUNCTIONS; f++)
			__atomic_store_n(&worlds[w].real[f], NULL, __ATOMIC_RELEASE);
	for (int f = 0; f < DRIVER_FUNCTIONS; f++)
		if (!a->driver[f])
			__atomic_store_n(&driver_real[f], NULL, __ATOMIC_RELEASE);
}

void resolve_unloaded(void)
{
	__atomic_store_n(&unloaded, true, __ATOMIC_RELEASE);
}

static void forget_unloaded(void)
{
	struct alive alive = { 0 };

	if (OS_LIKELY(!__atomic_load_n(&unloaded, __ATOMIC_RELAXED)) ||
	    !__atomic_exchange_n(&unloaded, false, __ATOMIC_ACQUIRE))
		return;
	forkgate_objects(note_alive, &alive);
	forget(&alive);
}

/* ---- worlds and callers ---- */

static struct world *world_at(uintptr_t base)
{
	uint32_t n = __atomic_load_n(&world_count, __ATOMIC_ACQUIRE);
	uintptr_t none;

	for (uint32_t i = 0; i < n; i++)
		if (worlds[i].base == base)
			return &worlds[i];
	for (uint32_t i = n; i < WORLDS_MAX; i++) {
		none = 0;
		if (__atomic_compare_exchange_n(&worlds[i].base, &none, base, false,
						__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ||
		    none == base) {
			__atomic_store_n(&world_count, i + 1, __ATOMIC_RELEASE);
			return &worlds[i];
		}
	}
	return &worlds[0];
}

/* An entry that is not in use: a forgotten one or a new one. */
static struct entry *new_entry(void)
{
	uint32_t n = __atomic_load_n(&caller_count, __ATOMIC_RELAXED);
	uintptr_t gone;

	for (uint32_t i = 0; i < n && i < CALLERS_MAX; i++) {
		gone = GONE;
		if (__atomic_compare_exchange_n(&callers[i].low, &gone, UINTPTR_MAX, false,
						__ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			return &callers[i];
	}
	n = __atomic_fetch_add(&caller_count, 1, __ATOMIC_RELAXED);
	return n < CALLERS_MAX ? &callers[n] : NULL;
}

static struct caller add_caller(struct where *w)
{
	struct caller c = { &worlds[0], w->framework };
	struct range range = w->range;
	struct entry *e = new_entry();

	if (w->needs && forkgate_objects(is_library, w))
		c.world = world_at(w->base);
	if (!e)
		return c;
	e->caller = c;
	__atomic_store_n(&e->low, range.low, __ATOMIC_RELEASE);
	__atomic_store_n(&e->high, range.high, __ATOMIC_RELEASE);
	return c;
}

/* Copied first, then seen to be still the same: another thread may be giving the entry away. */
static bool is_of(const struct entry *e, uintptr_t address, struct caller *out)
{
	uintptr_t high = __atomic_load_n(&e->high, __ATOMIC_ACQUIRE);

	if (address >= high || address < __atomic_load_n(&e->low, __ATOMIC_ACQUIRE))
		return false;
	*out = e->caller;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&e->high, __ATOMIC_RELAXED) == high;
}

struct caller resolve_caller(uintptr_t address)
{
	struct where w = { .address = address };
	struct caller c;
	uint32_t n;

	forget_unloaded();
	n = __atomic_load_n(&caller_count, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < n && i < CALLERS_MAX; i++)
		if (is_of(&callers[i], address, &c))
			return c;
	return forkgate_objects(is_there, &w) ? add_caller(&w) : unknown_caller;
}

/* ---- functions ---- */

static void *keep(void **slot, void *p)
{
	void *none = NULL;

	if (!p ||
	    __atomic_compare_exchange_n(slot, &none, p, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return p;
	return none;
}

void *resolve_runtime(const struct caller *c, enum runtime_function f)
{
	void **slot = &c->world->real[f], *p = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
	struct search s = { .name = runtime_names[f], .soname = "libcudart.so" };

	if (OS_LIKELY(p != NULL))
		return p;
	s.base = c->world->base;
	return keep(slot, search_for(s));
}

void *resolve_driver(enum driver_function f)
{
	void *p = __atomic_load_n(&driver_real[f], __ATOMIC_ACQUIRE);
	struct search s = { .name = driver_names[f], .soname = "libcuda.so" };

	if (OS_LIKELY(p != NULL))
		return p;
	return keep(&driver_real[f], search_for(s));
}

void *resolve_driver_maybe(enum driver_function f)
{
	uint64_t now;
	void *p = __atomic_load_n(&driver_real[f], __ATOMIC_ACQUIRE);

	if (OS_LIKELY(p != NULL))
		return p;
	now = os_now();
	if (now - __atomic_load_n(&driver_missed[f], __ATOMIC_RELAXED) < RETRY_NS)
		return NULL;
	p = resolve_driver(f);
	if (!p)
		__atomic_store_n(&driver_missed[f], now, __ATOMIC_RELAXED);
	return p;
}

bool resolve_same_runtime(enum runtime_function f, const void *real)
{
	forget_unloaded();
	return resolve_runtime(&unknown_caller, f) == real;
}

bool resolve_same_driver(enum driver_function f, const void *real)
{
	forget_unloaded();
	return resolve_driver_maybe(f) == real;
}
