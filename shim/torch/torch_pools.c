/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private pools that a program uses: torch.cuda.use_mem_pool, and compiled graphs before their
 * capture. The allocator is called by virtual functions, and its own have no symbols. Their places
 * in its vtable are read from that of another class with the same base, whose functions have
 * symbols. Then the allocator gets a copy of its vtable with hooks in these places. Once in a
 * process, and only if all of it is as expected. Application threads.
 */
#include "torch.h"

#include "../../format/record.h"
#include "../base/elfsym.h"
#include "../base/forkgate.h"

#include <string.h>

#define CLASS	  "N5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocator"
#define TABLE	  "_ZTV" CLASS "E"
#define BEGIN	  "_Z" CLASS "19beginAllocateToPoolEaSt4pairIyyESt8functionIFbP11CUstream_stEE"
#define END	  "_Z" CLASS "17endAllocateToPoolEaSt4pairIyyE"
#define ALLOCATOR "_ZN3c104cuda20CUDACachingAllocator9allocatorE"
#define CAPTURE	  "_ZN2at4cuda9CUDAGraph13capture_beginESt4pairIyyE21cudaStreamCaptureMode"

#define FRONT 2u   /* words of a table before its first function: an offset, the type */
#define MOST  256u /* words of a table with its front; PyTorch's allocators have about 60 */

typedef void begin_fn(void *allocator, int8_t device, struct torch_pool pool, const void *filter);
typedef void end_fn(void *allocator, int8_t device, struct torch_pool pool);

static begin_fn *real_begin;
static end_fn *real_end;
static const void *copy[MOST];
static uintptr_t graphs, graphs_end; /* the library that captures graphs */

/* Captures the event, unless a graph's capture is the caller: that has events of its own. */
static void record_pool(unsigned kind, int8_t device, struct torch_pool pool, const void *caller)
{
	uintptr_t from = (uintptr_t)caller;

	if (from < graphs || from >= graphs_end)
		torch_pool_event(kind, GMT_FLAG_OWN_POOL, pool, device);
}

static void begin_capture(void *allocator, int8_t device, struct torch_pool pool,
			  const void *filter)
{
	real_begin(allocator, device, pool, filter);
	record_pool(GMT_GRAPH_BEGIN, device, pool, __builtin_return_address(0));
}

static void end(void *allocator, int8_t device, struct torch_pool pool)
{
	real_end(allocator, device, pool);
	record_pool(GMT_GRAPH_END, device, pool, __builtin_return_address(0));
}

/* The part of a loaded object that an address lies in. */
struct place {
	uintptr_t at;
	uintptr_t low, high; /* of the object */
	size_t words;	     /* from the address to the end of its segment */
	bool runs, writable;
};

static int see(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct place *place = ctx;

	(void)size;
	if (!elfsym_holds(info, place->at))
		return 0;
	place->low = UINTPTR_MAX;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t first = info->dlpi_addr + p->p_vaddr, end = first + p->p_memsz;
		bool inside = place->at >= first && place->at < end;

		if (p->p_type == PT_GNU_RELRO && inside)
			place->writable = false;
		if (p->p_type != PT_LOAD)
			continue;
		place->low = first < place->low ? first : place->low;
		place->high = end > place->high ? end : place->high;
		if (inside) {
			place->words = (end - place->at) / sizeof(void *);
			place->runs = p->p_flags & PF_X;
			place->writable = p->p_flags & PF_W;
		}
	}
	return 1;
}

static struct place look(const void *at)
{
	struct place place = { .at = (uintptr_t)at };

	forkgate_objects(see, &place);
	return place;
}

/* The index of the function in the table; 0 = none. */
static size_t slot_of(const void *const *table, size_t words, const void *function)
{
	for (size_t i = FRONT; function && i < words && i < MOST; i++)
		if (table[i] == function)
			return i;
	return 0;
}

static bool same_object(const struct place *a, const struct place *b)
{
	return a->high && a->low == b->low;
}

/* Replaces the vtable of `object`, which begins with the address of the table's first function. */
static bool take_over(const void **object, size_t begins, size_t ends)
{
	struct place at = look(object), first, second, table;
	const void *const *words;

	if (!at.writable)
		return false;
	words = (const void *const *)*object - FRONT;
	table = look(words);
	if (!same_object(&at, &table) || table.words <= begins || table.words <= ends)
		return false;
	first = look(words[begins]);
	second = look(words[ends]);
	if (!same_object(&at, &first) || !same_object(&at, &second) || !first.runs || !second.runs)
		return false;
	memcpy(copy, words, (table.words < MOST ? table.words : MOST) * sizeof(*copy));
	real_begin = (begin_fn *)copy[begins];
	real_end = (end_fn *)copy[ends];
	copy[begins] = (const void *)begin_capture;
	copy[ends] = (const void *)end;
	__atomic_store_n(object, (const void *)(copy + FRONT), __ATOMIC_RELEASE);
	return true;
}

static bool start(void)
{
	const void ***allocator = elfsym_find(ALLOCATOR);
	const void *const *table = elfsym_find(TABLE);
	const void *capture = elfsym_find(CAPTURE);
	struct place place;
	size_t begins, ends;

	if (!allocator || !*allocator || !table)
		return false;
	place = look(table);
	begins = slot_of(table, place.words, elfsym_find(BEGIN));
	ends = slot_of(table, place.words, elfsym_find(END));
	if (capture) {
		place = look(capture);
		graphs = place.low;
		graphs_end = place.high;
	}
	return begins && ends && take_over(*allocator, begins, ends);
}

/* A program calls this for a pool of its own before it allocates from it, perhaps before any other
 * hooked function of the framework. The class moved with release 2.8. */
#define ID_HOOK(symbol)                                                              \
	__attribute__((visibility("default"))) struct torch_pool symbol(void *pool); \
	struct torch_pool symbol(void *pool)                                         \
	{                                                                            \
		static void *cache;                                                  \
		id_fn *real = (id_fn *)torch_real(&cache, #symbol);                  \
                                                                                     \
		if (torch_tags())                                                    \
			torch_pools();                                               \
		return real(pool);                                                   \
	}

typedef struct torch_pool id_fn(void *pool);

ID_HOOK(_ZN2at4cuda7MemPool2idEv)
ID_HOOK(_ZN3c104cuda7MemPool2idEv)

bool torch_pools(void)
{
	static bool tried, seen;

	if (!__atomic_exchange_n(&tried, true, __ATOMIC_ACQ_REL))
		__atomic_store_n(&seen, start(), __ATOMIC_RELEASE);
	return __atomic_load_n(&seen, __ATOMIC_ACQUIRE);
}
