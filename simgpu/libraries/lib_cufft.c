/* SPDX-License-Identifier: Apache-2.0
 *
 * cuFFT: plans and their work areas. AN APPROXIMATION: a work area holds one complex copy of the
 * data if no length has a prime factor above 127, else four (such a length is computed by a
 * convolution of more than twice the length). One dimension of a short power of two needs none,
 * because one kernel computes it in shared memory (seen on a card with 256). Any thread.
 */
#include <pthread.h>
#include <stdlib.h>
#include "lib.h"

enum { FFT_OK = 0, FFT_INVALID_PLAN = 1, FFT_ALLOC_FAILED = 2, FFT_INVALID = 4, FFT_BAD_SIZE = 8 };

#define LARGEST_PRIME	  127
#define LARGEST_IN_SHARED 4096
#define NO_SIZE		  ((size_t)-1)

struct plan {
	bool used, by_caller;
	size_t bytes;
	void *area, *given, *stream; /* given: by the program */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct plan *plans;
static int room;

static int find_free(void)
{
	struct plan *grown;
	int i;

	for (i = 1; i < room; i++)
		if (!plans[i].used)
			return i;
	grown = realloc(plans, (room + 256) * sizeof(*plans));
	if (!grown)
		return 0;
	plans = grown;
	for (int j = room; j < room + 256; j++)
		plans[j] = (struct plan){ 0 };
	i = room ? room : 1;
	room += 256;
	return i;
}

API(int, cufftCreate, int *out)
{
	int i;

	if (!out)
		return FFT_INVALID;
	pthread_mutex_lock(&lock);
	i = find_free();
	if (i)
		plans[i] = (struct plan){ .used = true };
	pthread_mutex_unlock(&lock);
	*out = i;
	return i ? FFT_OK : FFT_ALLOC_FAILED;
}

/* Holds the lock when it returns a plan. */
static struct plan *enter(int handle)
{
	pthread_mutex_lock(&lock);
	if (handle > 0 && handle < room && plans[handle].used)
		return &plans[handle];
	pthread_mutex_unlock(&lock);
	return NULL;
}

API(int, cufftDestroy, int handle)
{
	struct plan *p = enter(handle);
	void *area;

	if (!p)
		return FFT_INVALID_PLAN;
	area = p->area;
	*p = (struct plan){ 0 };
	pthread_mutex_unlock(&lock);
	lib_free(area);
	return FFT_OK;
}

API(int, cufftSetAutoAllocation, int handle, int on)
{
	struct plan *p = enter(handle);

	if (!p)
		return FFT_INVALID_PLAN;
	p->by_caller = !on;
	pthread_mutex_unlock(&lock);
	return FFT_OK;
}

API(int, cufftSetStream, int handle, void *stream)
{
	struct plan *p = enter(handle);

	if (!p)
		return FFT_INVALID_PLAN;
	p->stream = stream;
	pthread_mutex_unlock(&lock);
	return FFT_OK;
}

void *lib_use_plan(int handle)
{
	struct plan *p = enter(handle);
	void *stream, *area;

	if (!p)
		return NULL;
	stream = p->stream;
	area = p->given ? p->given : p->area;
	pthread_mutex_unlock(&lock);
	lib_use(area);
	return stream;
}

API(int, cufftSetWorkArea, int handle, void *area)
{
	struct plan *p = enter(handle);

	if (!p)
		return FFT_INVALID_PLAN;
	p->given = area;
	pthread_mutex_unlock(&lock);
	return FFT_OK;
}

static bool smooth(long long n)
{
	for (long long prime = 2; prime <= LARGEST_PRIME; prime++)
		while (n % prime == 0)
			n /= prime;
	return n == 1;
}

/* Bytes of a work area; NO_SIZE if a size is wrong. */
static size_t work(int rank, const long long *n, long long batch, size_t complex_bytes)
{
	size_t elements = batch;
	int copies = 1;

	if (rank < 1 || rank > 3 || !n || batch < 1 || !complex_bytes)
		return NO_SIZE;
	for (int i = 0; i < rank; i++) {
		if (n[i] < 1)
			return NO_SIZE;
		elements *= n[i];
		if (!smooth(n[i]))
			copies = 4;
	}
	if (rank == 1 && n[0] <= LARGEST_IN_SHARED && !(n[0] & (n[0] - 1)))
		return 0;
	return elements * copies * complex_bytes;
}

static int estimate(size_t *out, size_t bytes)
{
	if (!out)
		return FFT_INVALID;
	*out = bytes;
	return bytes == NO_SIZE ? FFT_BAD_SIZE : FFT_OK;
}

/* Sets the size of a plan's work area, and allocates it unless the caller brings one. */
static int make(int handle, size_t bytes, size_t *out)
{
	struct plan *p;
	bool by_caller;
	void *area = NULL;

	if (bytes == NO_SIZE)
		return FFT_BAD_SIZE;
	p = enter(handle);
	if (!p)
		return FFT_INVALID_PLAN;
	p->bytes = bytes;
	by_caller = p->by_caller;
	pthread_mutex_unlock(&lock);
	if (!by_caller && bytes)
		area = lib_alloc(bytes);
	if (!by_caller && bytes && !area)
		return FFT_ALLOC_FAILED;
	p = area ? enter(handle) : NULL; /* the table might have moved */
	if (p) {
		p->area = area;
		pthread_mutex_unlock(&lock);
	}
	if (out)
		*out = bytes;
	return FFT_OK;
}

API(int, cufftGetSize, int handle, size_t *out)
{
	struct plan *p = enter(handle);

	if (!p)
		return FFT_INVALID_PLAN;
	if (out)
		*out = p->bytes;
	pthread_mutex_unlock(&lock);
	return out ? FFT_OK : FFT_INVALID;
}

/* cufftType: Z2Z, D2Z and Z2D are the numbers with bit 6 and one of bits 1 to 3 set as below. */
static size_t complex_of(int type)
{
	return type == 0x69 || type == 0x6a || type == 0x6c ? 16 : 8;
}

static size_t work_int(int rank, const int *n, long long batch, int type)
{
	long long wide[3];

	if (rank < 1 || rank > 3 || !n)
		return NO_SIZE;
	for (int i = 0; i < rank; i++)
		wide[i] = n[i];
	return work(rank, wide, batch, complex_of(type));
}

/* For each shape of plan: functions that make it, of a handle or with one, and two for its size. */
#define SHAPE(kind, rank, batch, lengths, ...)                                              \
	API(int, cufftMakePlan##kind, int handle, __VA_ARGS__, size_t *out)                 \
	{                                                                                   \
		const int n[] = lengths;                                                    \
                                                                                            \
		return make(handle, work_int(rank, n, batch, type), out);                   \
	}                                                                                   \
	API(int, cufftPlan##kind, int *plan, __VA_ARGS__)                                   \
	{                                                                                   \
		const int n[] = lengths;                                                    \
		int result = cufftCreate(plan);                                             \
                                                                                            \
		return result ? result : make(*plan, work_int(rank, n, batch, type), NULL); \
	}                                                                                   \
	API(int, cufftGetSize##kind, UNUSED int handle, __VA_ARGS__, size_t *out)           \
	{                                                                                   \
		const int n[] = lengths;                                                    \
                                                                                            \
		return estimate(out, work_int(rank, n, batch, type));                       \
	}                                                                                   \
	API(int, cufftEstimate##kind, __VA_ARGS__, size_t *out)                             \
	{                                                                                   \
		const int n[] = lengths;                                                    \
                                                                                            \
		return estimate(out, work_int(rank, n, batch, type));                       \
	}
#define LENGTHS(...)        \
	{                   \
		__VA_ARGS__ \
	}

SHAPE(1d, 1, batch, LENGTHS(x), int x, int type, int batch)
SHAPE(2d, 2, 1, LENGTHS(x, y), int x, int y, int type)
SHAPE(3d, 3, 1, LENGTHS(x, y, z), int x, int y, int z, int type)

#define LAYOUT(T)                                                                         \
	UNUSED T *in, UNUSED T in_step, UNUSED T in_next, UNUSED T *to, UNUSED T to_step, \
		UNUSED T to_next

API_CALL(int, cufftMakePlanMany, make(handle, work_int(rank, n, batch, type), out), int handle,
	 int rank, int *n, LAYOUT(int), int type, int batch, size_t *out)

API(int, cufftPlanMany, int *plan, int rank, int *n, LAYOUT(int), int type, int batch)
{
	int result = cufftCreate(plan);

	return result ? result : make(*plan, work_int(rank, n, batch, type), NULL);
}

API_CALL(int, cufftGetSizeMany, estimate(out, work_int(rank, n, batch, type)), UNUSED int handle,
	 int rank, int *n, LAYOUT(int), int type, int batch, size_t *out)
API_CALL(int, cufftEstimateMany, estimate(out, work_int(rank, n, batch, type)), int rank, int *n,
	 LAYOUT(int), int type, int batch, size_t *out)
API_CALL(int, cufftMakePlanMany64, make(handle, work(rank, n, batch, complex_of(type)), out),
	 int handle, int rank, long long *n, LAYOUT(long long), int type, long long batch,
	 size_t *out)
API_CALL(int, cufftGetSizeMany64, estimate(out, work(rank, n, batch, complex_of(type))),
	 UNUSED int handle, int rank, long long *n, LAYOUT(long long), int type, long long batch,
	 size_t *out)

#define XT_LAYOUT                                                                   \
	UNUSED long long *in, UNUSED long long in_step, UNUSED long long in_next,   \
		UNUSED int in_type, UNUSED long long *to, UNUSED long long to_step, \
		UNUSED long long to_next, UNUSED int to_type

API_CALL(int, cufftXtMakePlanMany, make(handle, work(rank, n, batch, lib_type_bytes(type)), out),
	 int handle, int rank, long long *n, XT_LAYOUT, long long batch, size_t *out, int type)
API_CALL(int, cufftXtGetSizeMany, estimate(out, work(rank, n, batch, lib_type_bytes(type))),
	 UNUSED int handle, int rank, long long *n, XT_LAYOUT, long long batch, size_t *out,
	 int type)

API_PROPERTY(cufftGetProperty, "cufft", FFT_INVALID)
API_VERSION(cufftGetVersion, "cufft", 1000, FFT_INVALID, int *out)
