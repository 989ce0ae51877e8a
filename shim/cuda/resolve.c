/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the real function for each caller. Objects that were loaded after us at the process's start
 * are in everybody's scope and come first: the simulated device, other interposers. Next is the
 * libcudart or libcudnn that the caller is linked with (several versions can be loaded), then any.
 *
 * Application threads, any lock held. Tables only grow and are filled by compare-and-swap; two
 * threads that fill an entry find the same.
 */
#include "resolve.h"

#include "../base/elfsym.h"
#include "../base/forkgate.h"
#include "../base/os.h"

#include <dlfcn.h>
#include <string.h>

#define CALLERS_MAX 256
#define WORLDS_MAX  8
#define RETRY_NS    100000000ull
#define GONE	    1 /* in place of an address: a forgotten entry */

struct world {
	uintptr_t base; /* of the library; 0 = whichever there is */
	void *real[RUNTIME_FUNCTIONS];
};

_Static_assert((int)CUDNN_FUNCTIONS <= (int)RUNTIME_FUNCTIONS, "a world has room for either");

enum rank { RANK_NONE, RANK_ANY, RANK_NAMED, RANK_START };

struct search {
	const char *name;
	const char *soname; /* of the library, or its prefix */
	uintptr_t base;	    /* only this library of that name; 0 = any */
	bool behind;	    /* search only the objects of the start */
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
	uintptr_t address;
	struct dl_phdr_info object; /* that holds the address */
};

/* A library that the object of `where` was linked with. */
struct linked_with {
	const struct where *where;
	enum linked library;
	uintptr_t base;
};

/* The prefix of each library's name, and a function by which the right one is found: cuDNN consists
 * of several libraries. */
static const struct {
	const char *soname, *function;
} libraries[LINKED] = {
	[LINKED_RUNTIME] = { "libcudart.so", "cudaMalloc" },
	[LINKED_CUDNN] = { "libcudnn", "cudnnBackendExecute" },
};

static const char *const runtime_names[] = {
#define RUNTIME(name, proto, args, effect) [RUNTIME_##name] = #name,
#define USES_RUNTIME(name, proto)	   [RUNTIME_##name] = #name,
#include "../hooks.def"
};

static const char *const cudnn_names[] = {
#define CUDNN(name, proto) [CUDNN_##name] = #name,
#include "../hooks.def"
};

static const char *const driver_names[] = {
#define DRIVER(symbol, base, version, per_thread, proto, args, effect) [DRIVER_##symbol] = #symbol,
#define USES_DRIVER(symbol, proto)				       [DRIVER_##symbol] = #symbol,
#include "../hooks.def"
};

static struct world worlds[LINKED][WORLDS_MAX]; /* the first is the one of base 0 */
static uint32_t world_count[LINKED] = { 1, 1 };
static struct entry callers[CALLERS_MAX];
static uint32_t caller_count;
static const struct caller unknown_caller = {
	.world = { worlds[LINKED_RUNTIME], worlds[LINKED_CUDNN] },
};
static void *driver_real[DRIVER_FUNCTIONS];
static uint64_t driver_missed[DRIVER_FUNCTIONS];
static int start_count; /* objects that were there at the start */
static bool unloaded;	/* an object was unloaded since the last check */

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

static int rank_library(struct dl_phdr_info *info, size_t size, void *ctx)
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
	forkgate_objects(rank_library, &s);
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
	w->object = *info;
	return 1;
}

bool resolve_same_object(const void *a, const void *b)
{
	struct where w = { .address = (uintptr_t)a };
	struct range r;

	if (!forkgate_objects(is_there, &w))
		return false;
	r = range_of(&w.object);
	return (uintptr_t)b >= r.low && (uintptr_t)b < r.high;
}

/* Like the loader: takes the first library that is loaded under a name that the object needs. */
static int is_library(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct linked_with *l = ctx;
	const char *soname = elfsym_entry(info, DT_SONAME, libraries[l->library].soname);
	const char *needs = soname ? elfsym_entry(&l->where->object, DT_NEEDED, soname) : NULL;

	(void)size;
	if (!needs || strcmp(soname, needs) || !elfsym_in(info, libraries[l->library].function))
		return 0;
	l->base = info->dlpi_addr;
	return 1;
}

/*
 * ---- unloaded objects: others can be loaded at their addresses ----
 *
 * All functions are then looked up again, except the driver's in a libcuda and in the objects of
 * the start, which stay loaded.
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

static void forget_world(struct world *w)
{
	for (int f = 0; f < RUNTIME_FUNCTIONS; f++)
		__atomic_store_n(&w->real[f], NULL, __ATOMIC_RELEASE);
}

static void forget(const struct alive *a)
{
	for (int c = 0; c < CALLERS_MAX; c++) {
		if (!__atomic_exchange_n(&callers[c].high, 0, __ATOMIC_SEQ_CST))
			continue;
		__atomic_store_n(&callers[c].low, GONE, __ATOMIC_SEQ_CST);
	}
	for (int l = 0; l < LINKED; l++)
		for (int w = 0; w < WORLDS_MAX; w++)
			forget_world(&worlds[l][w]);
	for (int f = 0; f < DRIVER_FUNCTIONS; f++)
		if (!a->driver[f])
			__atomic_store_n(&driver_real[f], NULL, __ATOMIC_RELEASE);
}

void resolve_unloaded(void)
{
	__atomic_store_n(&unloaded, true, __ATOMIC_RELEASE);
}

static __attribute__((noinline)) void forget_what_is_gone(void)
{
	struct alive alive = { 0 };

	forkgate_objects(note_alive, &alive);
	forget(&alive);
}

static inline void forget_unloaded(void)
{
	if (OS_UNLIKELY(__atomic_load_n(&unloaded, __ATOMIC_RELAXED)) &&
	    __atomic_exchange_n(&unloaded, false, __ATOMIC_ACQUIRE))
		forget_what_is_gone();
}

/* ---- worlds and callers ---- */

static struct world *world_at(enum linked library, uintptr_t base)
{
	struct world *all = worlds[library];
	uint32_t n = __atomic_load_n(&world_count[library], __ATOMIC_ACQUIRE);
	uintptr_t none;

	for (uint32_t i = 0; i < n; i++)
		if (all[i].base == base)
			return &all[i];
	for (uint32_t i = n; i < WORLDS_MAX; i++) {
		none = 0;
		if (__atomic_compare_exchange_n(&all[i].base, &none, base, false, __ATOMIC_SEQ_CST,
						__ATOMIC_SEQ_CST) ||
		    none == base) {
			__atomic_store_n(&world_count[library], i + 1, __ATOMIC_RELEASE);
			return &all[i];
		}
	}
	return all;
}

static struct world *world_of(const struct where *w, enum linked library)
{
	struct linked_with l = { w, library, 0 };

	if (!elfsym_entry(&w->object, DT_NEEDED, libraries[library].soname) ||
	    !forkgate_objects(is_library, &l))
		return worlds[library];
	return world_at(library, l.base);
}

/* An unused entry, a forgotten or a new one. NULL: the table is full. */
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

static struct caller add_caller(const struct where *w)
{
	struct caller c = {
		.framework = elfsym_entry(&w->object, DT_SONAME, "libc10_cuda.so") != NULL,
		.cudnn = elfsym_entry(&w->object, DT_SONAME, "libcudnn") != NULL,
	};
	struct range range = range_of(&w->object);
	struct entry *e = new_entry();

	for (unsigned l = 0; l < LINKED; l++)
		c.world[l] = world_of(w, (enum linked)l);
	if (!e)
		return c;
	e->caller = c;
	__atomic_store_n(&e->low, range.low, __ATOMIC_RELEASE);
	__atomic_store_n(&e->high, range.high, __ATOMIC_RELEASE);
	return c;
}

/* Copies the caller, then checks that the entry is the same: another thread might reuse it. */
static bool is_of(const struct entry *e, uintptr_t address, struct caller *out)
{
	uintptr_t high = __atomic_load_n(&e->high, __ATOMIC_ACQUIRE);

	if (address >= high || address < __atomic_load_n(&e->low, __ATOMIC_ACQUIRE))
		return false;
	*out = e->caller;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&e->high, __ATOMIC_RELAXED) == high;
}

/* A function of its own, so that known callers do not pay for its stack frame. */
static __attribute__((noinline)) struct caller new_caller(uintptr_t address)
{
	struct where w = { .address = address };

	return forkgate_objects(is_there, &w) ? add_caller(&w) : unknown_caller;
}

struct caller resolve_caller(uintptr_t address)
{
	struct caller c;
	uint32_t n;

	forget_unloaded();
	n = __atomic_load_n(&caller_count, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < n && i < CALLERS_MAX; i++)
		if (is_of(&callers[i], address, &c))
			return c;
	return new_caller(address);
}

/* ---- functions ---- */

static void *keep_function(void **slot, void *p)
{
	void *none = NULL;

	if (!p ||
	    __atomic_compare_exchange_n(slot, &none, p, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return p;
	return none;
}

static void *resolve_linked(const struct caller *c, enum linked library, unsigned f,
			    const char *name)
{
	struct world *w = c->world[library];
	void *p = __atomic_load_n(&w->real[f], __ATOMIC_ACQUIRE);
	struct search s = { .name = name, .soname = libraries[library].soname };

	if (OS_LIKELY(p != NULL))
		return p;
	s.base = w->base;
	return keep_function(&w->real[f], search_for(s));
}

void *resolve_runtime(const struct caller *c, enum runtime_function f)
{
	return resolve_linked(c, LINKED_RUNTIME, f, runtime_names[f]);
}

static int count_named(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct search *s = ctx;

	(void)size;
	if (elfsym_entry(info, DT_SONAME, s->soname) && elfsym_in(info, s->name))
		s->index++;
	return 0;
}

/*
 * A caller that is not linked with cuDNN gets the one that the loader finds in the global scope.
 * Only the loader knows that scope, so if there are several candidates it is asked, once.
 */
static void *resolve_unlinked(struct world *w, enum cudnn_function f)
{
	struct search s = { .name = cudnn_names[f], .soname = libraries[LINKED_CUDNN].soname };
	void *p;

	forkgate_objects(count_named, &s);
	p = s.index > 1 ? dlsym(RTLD_NEXT, s.name) : NULL;
	return p ? keep_function(&w->real[f], p) : NULL;
}

void *resolve_cudnn(const struct caller *c, enum cudnn_function f)
{
	struct world *w = c->world[LINKED_CUDNN];
	void *p = NULL;

	if (OS_UNLIKELY(!w->base && !__atomic_load_n(&w->real[f], __ATOMIC_ACQUIRE)))
		p = resolve_unlinked(w, f);
	return p ? p : resolve_linked(c, LINKED_CUDNN, f, cudnn_names[f]);
}

void *resolve_driver(enum driver_function f)
{
	void *p = __atomic_load_n(&driver_real[f], __ATOMIC_ACQUIRE);
	struct search s = { .name = driver_names[f], .soname = "libcuda.so" };

	if (OS_LIKELY(p != NULL))
		return p;
	return keep_function(&driver_real[f], search_for(s));
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
