/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded in front of the simulated device: stands between the runtime, the libraries and the
 * driver, as the recorder does, and keeps a line for each call of the driver that uses memory:
 * "FUNCTION NAME WORD...", the words of a kernel's parameters, or the addresses of a copy or a set.
 * launches_take() gives the lines since it was last asked. "FUNCTION NAME ?": no layout.
 */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PUBLIC __attribute__((visibility("default")))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *text, *taken;
static size_t length, room;

static void put(const char *s)
{
	size_t n = strlen(s);

	if (length + n + 1 > room) {
		room = 2 * (length + n + 1);
		text = realloc(text, room);
	}
	memcpy(text + length, s, n + 1);
	length += n;
}

static void put_word(uint64_t word)
{
	char s[24];

	snprintf(s, sizeof(s), " %llx", (unsigned long long)word);
	put(s);
}

PUBLIC const char *launches_take(void)
{
	pthread_mutex_lock(&lock);
	free(taken);
	taken = text ? text : strdup("");
	text = NULL;
	length = room = 0;
	pthread_mutex_unlock(&lock);
	return taken;
}

/* ---- kernels ---- */

static CUresult (*parameter)(CUfunction, size_t, size_t *, size_t *);
static CUresult (*name_of)(const char **, CUfunction);

static void put_bytes(const unsigned char *at, size_t bytes)
{
	uint64_t word;

	for (; bytes >= sizeof(word); at += sizeof(word), bytes -= sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		if (word >> 32)
			put_word(word);
	}
}

static void put_parameters(CUfunction f, void **params)
{
	size_t offset, size;
	int result = 0;

	for (size_t i = 0; !(result = parameter(f, i, &offset, &size)); i++)
		put_bytes(params[i], size);
	if (result != CUDA_ERROR_INVALID_VALUE)
		put(" ?");
}

static void note_kernel(const char *function, CUfunction f, void **params, void **extra)
{
	const char *name = "?";

	pthread_mutex_lock(&lock);
	name_of(&name, f);
	put(function);
	put(" ");
	put(name);
	if (params)
		put_parameters(f, params);
	else if (extra)
		put_bytes(extra[1], *(size_t *)extra[3]);
	put("\n");
	pthread_mutex_unlock(&lock);
}

static void note(const char *function, CUdeviceptr a, CUdeviceptr b)
{
	pthread_mutex_lock(&lock);
	put(function);
	put(" -");
	put_word(a);
	put_word(b);
	put("\n");
	pthread_mutex_unlock(&lock);
}

/* ---- what stands in between ---- */

#define CALL(name, proto, args, noted)       \
	static CUresult(*real_##name) proto; \
	static CUresult my_##name proto      \
	{                                    \
		noted;                       \
		return real_##name args;     \
	}
#include "launches.def"
#undef CALL

static const struct {
	const char *name;
	void *mine, *real;
} functions[] = {
#define CALL(name, proto, args, noted) { #name, (void *)my_##name, &real_##name },
#include "launches.def"
#undef CALL
};

static CUresult (*ask)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

static void *take_in(const char *name, void *found)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (!strcmp(functions[i].name, name)) {
			memcpy(functions[i].real, &found, sizeof(found));
			return functions[i].mine;
		}
	return found;
}

static CUresult my_ask(const char *name, void **fn, int version, cuuint64_t flags,
		       CUdriverProcAddressQueryResult *status)
{
	CUresult result = ask(name, fn, version, flags, status);

	if (!result)
		*fn = take_in(name, *fn);
	return result;
}

typedef void *lookup(void *handle, const char *name);

static lookup *real(void)
{
	static lookup *found;

	if (!found)
		found = (lookup *)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	return found;
}

__attribute__((constructor)) static void look_up(void)
{
	parameter = (typeof(parameter))real()(RTLD_NEXT, "cuFuncGetParamInfo");
	name_of = (typeof(name_of))real()(RTLD_NEXT, "cuFuncGetName");
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (!strncmp(functions[i].name, "cuLaunch", 8))
			take_in(functions[i].name, real()(RTLD_NEXT, functions[i].name));
}

/* Other names are looked up by a jump, for RTLD_NEXT depends on the caller. */
PUBLIC void *dlsym(void *handle, const char *name)
{
	bool launches = !strncmp(name, "cuLaunch", 8);
	void *found;

	if (handle == RTLD_NEXT || !(launches || !strcmp(name, "cuGetProcAddress_v2")))
		return real()(handle, name);
	found = real()(handle, name);
	if (!found || launches)
		return found ? take_in(name, found) : NULL;
	memcpy(&ask, &found, sizeof(found));
	return (void *)my_ask;
}

/* For those that are linked with the driver. */
PUBLIC CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
			       unsigned by, unsigned bz, unsigned shared, CUstream s, void **params,
			       void **extra)
{
	return my_cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, s, params, extra);
}
