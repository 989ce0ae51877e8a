/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels by handle, in a table of one level; their facts lie in memory that only grows. An unload
 * voids them all, because handles are reused. Two threads can ask the driver about the same kernel
 * at once; both answers are right.
 *
 * A CUfunction and a CUkernel are launched by the same call, but queried by two functions, each of
 * which accepts only its own kind. So on a real GPU only handles are queried that were seen when
 * the driver gave them out; the simulated driver knows its own.
 */
#include "kernel_layouts.h"

#include "../base/intern.h"
#include "../capture.h"
#include "hook.h"
#include "kernel_images.h"

#include <string.h>

#define PLACES	   (1u << 14)
#define WINDOW	   8u
#define ARENA	   (8u << 20)
#define PARTS_MOST 128u
#define PARAMETERS 1024u /* most parameters that are looked at */
#define NAME_MOST  4096u

enum handle { HANDLE_UNSEEN, HANDLE_FUNCTION, HANDLE_KERNEL };

struct place {
	const void *function;
	struct kernel *kernel; /* NULL: not queried yet */
	uint32_t unloads;      /* value of `unloads` when the kernel was queried */
	uint32_t handle;       /* enum handle */
	const void *code;      /* drivers before CUDA 12.4: module or library, */
	uint64_t name;	       /* and image_hash of its name in it */
};

static struct place *places;
static char *arena;
static uint64_t arena_used;
static uint32_t unloads = 1;

static void *map_once(void **at, size_t bytes)
{
	void *now = __atomic_load_n(at, __ATOMIC_ACQUIRE), *none = NULL;

	if (OS_LIKELY(now != NULL))
		return now;
	now = os_map(bytes);
	if (!now ||
	    __atomic_compare_exchange_n(at, &none, now, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return now;
	os_unmap(now, bytes);
	return none;
}

static void *arena_take(size_t bytes)
{
	char *from = map_once((void **)&arena, ARENA);
	uint64_t at;

	bytes = (bytes + 7) & ~(size_t)7;
	if (!from || __atomic_load_n(&arena_used, __ATOMIC_RELAXED) + bytes > ARENA)
		return NULL;
	at = __atomic_fetch_add(&arena_used, bytes, __ATOMIC_RELAXED);
	return at + bytes <= ARENA ? from + at : NULL;
}

/* The function's place, claimed if it has none; NULL if there is no room near it. */
static struct place *place_of(const void *function)
{
	struct place *table = map_once((void **)&places, PLACES * sizeof(*table));
	uint64_t first = intern_mix((uintptr_t)function) % PLACES & ~(uint64_t)(WINDOW - 1);

	for (unsigned i = 0; table && i < WINDOW; i++) {
		struct place *p = &table[first + i];
		const void *seen = __atomic_load_n(&p->function, __ATOMIC_ACQUIRE);

		if (seen == function)
			return p;
		if (!seen && (__atomic_compare_exchange_n(&p->function, &seen, function, false,
							  __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
			      seen == function))
			return p;
	}
	return NULL;
}

void kernel_saw_handle(const void *function, bool is_kernel)
{
	struct place *p = function ? place_of(function) : NULL;

	if (p)
		__atomic_store_n(&p->handle, is_kernel ? HANDLE_KERNEL : HANDLE_FUNCTION,
				 __ATOMIC_RELAXED);
}

void kernel_saw_named(const void *function, bool is_kernel, const void *code, const char *name)
{
	struct place *p = images_are_needed() && function ? place_of(function) : NULL;

	if (p) {
		__atomic_store_n(&p->code, code, __ATOMIC_RELAXED);
		__atomic_store_n(&p->name, image_hash(name, strlen(name)), __ATOMIC_RELAXED);
	}
	kernel_saw_handle(function, is_kernel);
}

void kernel_saw_function_of(const void *function, const void *kernel)
{
	struct place *p = images_are_needed() && function ? place_of(function) : NULL;
	const struct place *from = p ? place_of(kernel) : NULL;

	if (from) {
		__atomic_store_n(&p->code, __atomic_load_n(&from->code, __ATOMIC_RELAXED),
				 __ATOMIC_RELAXED);
		__atomic_store_n(&p->name, __atomic_load_n(&from->name, __ATOMIC_RELAXED),
				 __ATOMIC_RELAXED);
	}
	kernel_saw_handle(function, false);
}

void kernel_forget_all(void)
{
	__atomic_add_fetch(&unloads, 1, __ATOMIC_RELAXED);
}

/* ---- questions to the driver ---- */

static bool is_simulated(void)
{
	static int known; /* 0: not looked for yet */
	int is = __atomic_load_n(&known, __ATOMIC_RELAXED);

	if (!is) {
		is = resolve_next("simgpuCards") ? 1 : 2;
		__atomic_store_n(&known, is, __ATOMIC_RELAXED);
	}
	return is == 1;
}

/* The source of a kernel's facts: the driver, or the code that it is in. */
struct source {
	const void *function;
	bool is_kernel, has_image;
	struct image_kernel image;
};

static int ask_parameter(const struct source *s, size_t i, size_t *offset, size_t *size)
{
	typeof(&cuKernelGetParamInfo) of_kernel = MAYBE_DRIVER(cuKernelGetParamInfo);
	typeof(&cuFuncGetParamInfo) of_function = MAYBE_DRIVER(cuFuncGetParamInfo);

	if (s->has_image)
		return image_parameter(&s->image, i, offset, size);
	if (s->is_kernel)
		return of_kernel ? of_kernel((void *)s->function, i, offset, size) : -1;
	return of_function ? of_function((void *)s->function, i, offset, size) : -1;
}

static const char *ask_name(const struct source *s, size_t *length)
{
	typeof(&cuKernelGetName) of_kernel = MAYBE_DRIVER(cuKernelGetName);
	typeof(&cuFuncGetName) of_function = MAYBE_DRIVER(cuFuncGetName);
	const char *name = NULL;
	int rc = -1;

	*length = s->image.name_size;
	if (s->has_image)
		return s->image.name;
	if (s->is_kernel && of_kernel)
		rc = of_kernel(&name, (void *)s->function);
	else if (!s->is_kernel && of_function)
		rc = of_function(&name, (void *)s->function);
	if (rc || !name)
		name = "";
	*length = strnlen(name, NAME_MOST);
	return name;
}

/* Adds the parameter's words that can hold an address. False: too many or too long to be kept. */
static bool add_part(struct kernel_part *parts, unsigned *n, size_t i, size_t offset, size_t size)
{
	size_t skip = -offset & 7, words = size > skip ? (size - skip) / 8 : 0;

	if (!words)
		return true;
	if (*n == PARTS_MOST || offset + size > UINT16_MAX)
		return false;
	parts[(*n)++] = (struct kernel_part){ (uint16_t)i, (uint16_t)skip, (uint16_t)words,
					      (uint16_t)(offset + skip) };
	return true;
}

static struct kernel *ask_source(const struct source *s, bool known)
{
	struct kernel_part parts[PARTS_MOST];
	size_t length = 0, offset, size, sizes[2] = { 0 }, i = 0;
	static const char reduction[] = "8ReduceOpI";
	const char *name = known ? ask_name(s, &length) : "";
	unsigned n = 0;
	struct kernel *k;
	int rc = 0;

	for (; known && i < PARAMETERS && !(rc = ask_parameter(s, i, &offset, &size)); i++) {
		if (!add_part(parts, &n, i, offset, size))
			break;
		if (i < 2)
			sizes[i] = size;
	}
	k = arena_take(sizeof(*k) + n * sizeof(*parts) + length);
	if (!k)
		return NULL;
	*k = (struct kernel){ .is_read = rc == CUDA_INVALID_VALUE,
			      .reduces = memmem(name, length, reduction, sizeof(reduction) - 1) !=
					 NULL,
			      .count = n,
			      .name_size = (uint32_t)length,
			      .lists = tensor_lists_of(name, length, sizes) };
	memcpy(k->parts, parts, n * sizeof(*parts));
	memcpy(&k->parts[n], name, length);
	return k;
}

static struct kernel *ask_kernel(const struct place *p, const void *function)
{
	uint32_t handle = __atomic_load_n(&p->handle, __ATOMIC_RELAXED);
	struct source s = { .function = function, .is_kernel = handle == HANDLE_KERNEL };
	struct kernel *k;

	s.has_image = images_are_needed() &&
		      image_find(__atomic_load_n(&p->code, __ATOMIC_RELAXED),
				 __atomic_load_n(&p->name, __ATOMIC_RELAXED), &s.image);
	k = ask_source(&s, s.has_image || handle || is_simulated());
	if (s.has_image)
		image_close(&s.image);
	return k;
}

static __attribute__((noinline)) struct kernel *ask_anew(struct place *p, const void *function)
{
	uint32_t now = __atomic_load_n(&unloads, __ATOMIC_RELAXED);
	struct kernel *k = ask_kernel(p, function);

	__atomic_store_n(&p->kernel, k, __ATOMIC_RELEASE);
	__atomic_store_n(&p->unloads, now, __ATOMIC_RELEASE);
	return k;
}

struct kernel *kernel_of(const void *function)
{
	struct place *p = place_of(function);

	if (!p)
		return NULL;
	if (OS_LIKELY(__atomic_load_n(&p->unloads, __ATOMIC_ACQUIRE) ==
		      __atomic_load_n(&unloads, __ATOMIC_RELAXED)))
		return __atomic_load_n(&p->kernel, __ATOMIC_ACQUIRE);
	return ask_anew(p, function);
}

uint32_t kernel_name(struct kernel *k)
{
	return call_string(k->name, (const char *)&k->parts[k->count], k->name_size);
}
