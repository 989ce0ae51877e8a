/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcuda.so.1 that knows every function by name and can do none of them. It shows what a real
 * CUDA runtime asks a driver for; the runtime gives up soon after, as it should with a driver that
 * is not NVIDIA's. It is as old as FAKE_CUDA says, and the file FORMS lists the forms of functions
 * that it has, FORM(symbol, name, version, per_thread): of those not newer than what is asked for
 * it gives the newest, as NVIDIA's do.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NOT_SUPPORTED 801

#define FORM(symbol, name, version, per_thread) \
	int symbol(void);                       \
	int symbol(void)                        \
	{                                       \
		return NOT_SUPPORTED;           \
	}
#include FORMS
#undef FORM

int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuGetProcAddress(const char *name, void **fn, int version, uint64_t flags);
int cuGetProcAddress_v2(const char *name, void **fn, int version, uint64_t flags, int *status);
int cuNewInNextCuda(void);

static const struct form {
	const char *name;
	int version, per_thread;
	void *fn;
} forms[] = {
#define FORM(symbol, name, version, per_thread) { #name, version, per_thread, (void *)symbol },
#include FORMS
	{ "cuGetProcAddress", 11030, 0, (void *)cuGetProcAddress },
	{ "cuGetProcAddress", 12000, 0, (void *)cuGetProcAddress_v2 },
	{ "cuInit", 2000, 0, (void *)cuInit },
	{ "cuDriverGetVersion", 2020, 0, (void *)cuDriverGetVersion },
};

static int stub(void)
{
	return NOT_SUPPORTED;
}

int cuInit(unsigned flags)
{
	(void)flags;
	return 0;
}

int cuDriverGetVersion(int *version)
{
	*version = FAKE_CUDA;
	return 0;
}

int cuNewInNextCuda(void)
{
	return NOT_SUPPORTED;
}

static const struct form *choose(const char *name, int version, int per_thread)
{
	const struct form *best = NULL;

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		const struct form *f = &forms[i];

		if (f->version > version || f->per_thread > per_thread || strcmp(f->name, name))
			continue;
		if (!best || f->per_thread > best->per_thread ||
		    (f->per_thread == best->per_thread && f->version > best->version))
			best = f;
	}
	return best;
}

/* The empty name is the runtime's first question. */
int cuGetProcAddress_v2(const char *name, void **fn, int version, uint64_t flags, int *status)
{
	const struct form *f = choose(name, version, (flags & 2) != 0);

	if (status)
		*status = *name ? 0 : 1;
	*fn = NULL;
	if (!*name)
		return 500;
	if (version >= 14000) /* has other parameters by then, for all we know */
		*fn = (void *)cuNewInNextCuda;
	else
		*fn = f ? f->fn : (void *)stub;
	return 0;
}

int cuGetProcAddress(const char *name, void **fn, int version, uint64_t flags)
{
	return cuGetProcAddress_v2(name, fn, version, flags, NULL);
}
