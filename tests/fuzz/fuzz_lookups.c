/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any arguments of cuGetProcAddress and cuGetProcAddress_v2, once asked of a driver library and
 * once through our hooks: the same code and status; our hook of a function exactly where the driver
 * gave the function that it exports under the symbol of that hook's row; else what the driver gave.
 *
 * The driver is the libcuda.so.1 in GPUMEMTRACE_FUZZ_DRIVER (a folder), else the simulated one.
 * Input: version (2 bytes), flags (1), the function and whether it gets a place for the status (1),
 * then the name. A NULL name or place for the function is not tried: NVIDIA's driver dies of it.
 *
 * links: shim/base/ shim/rings/ shim/stacks/ shim/recording/
 *
 * links: shim/process.c shim/bus.c shim/confine.c shim/leave.c
 *
 * links: shim/cuda/[c-q]*.c shim/cuda/redirect.c shim/cuda/redirect_entry.c shim/cuda/res*.c
 *
 * links: shim/cuda/reuse.c shim/cuda/[s-u]*.c
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../shim/capture.h"
#include "../../shim/cuda/hook.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define BOUND 0x5a5a5a5a

static typeof(&cuGetProcAddress) real_old;
static typeof(&cuGetProcAddress_v2) real_new;

static struct row {
	const char *name;
	void *hook, *real;
} rows[] = {
#define DRIVER(symbol, base, version, per_thread, proto, args, effect) \
	{ #symbol, (void *)symbol, NULL },
#include "../../shim/hooks.def"
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* What one call did: its code, and what lies where it writes. */
struct answer {
	int rc, status[3];
	void *fn[3];
};

struct question {
	const char *name;
	int version;
	uint64_t flags;
	bool old, no_status;
};

static void find_driver(void)
{
	const char *folder = getenv("GPUMEMTRACE_FUZZ_DRIVER");
	char path[4096];
	void *driver;

	snprintf(path, sizeof(path), "%s/libcuda.so.1", folder ? folder : "build/simgpu");
	driver = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	if (!driver) {
		fprintf(stderr, "fuzz_lookups: %s\n", dlerror());
		exit(1);
	}
	real_old = (typeof(real_old))dlsym(driver, "cuGetProcAddress");
	real_new = (typeof(real_new))dlsym(driver, "cuGetProcAddress_v2");
	for (size_t i = 0; i < ROWS; i++)
		rows[i].real = dlsym(driver, rows[i].name);
	if (!real_old || !gmt_recording())
		abort();
}

static struct answer ask(const struct question *q, typeof(real_old) old, typeof(real_new) new)
{
	struct answer a = { 0, { BOUND, BOUND, BOUND }, { rows, rows, rows } };

	if (q->old || !new)
		a.rc = old(q->name, &a.fn[1], q->version, q->flags);
	else
		a.rc = new (q->name, &a.fn[1], q->version, q->flags,
			    q->no_status ? NULL : &a.status[1]);
	return a;
}

/* Ours of the same function, if it is one of our rows. */
static void *expected(void *real)
{
	for (size_t i = 0; i < ROWS; i++)
		if (rows[i].real == real && real)
			return rows[i].hook;
	return real;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char name[300] = "";
	struct question q = { .name = name };
	struct answer alone, ours;
	uint8_t choice;

	if (!real_old)
		find_driver();
	if (len < 4)
		return 0;
	choice = data[3];
	q.version = data[0] | data[1] << 8;
	q.flags = data[2];
	q.no_status = choice & 4;
	q.old = choice & 8;
	if (choice & 16)
		q.version = (int)((unsigned)q.version << 16 | 0x8000u);
	if (choice & 32)
		q.flags <<= 56;
	len -= 4;
	memcpy(name, data + 4, len < sizeof(name) ? len : sizeof(name) - 1);
	alone = ask(&q, real_old, real_new);
	ours = ask(&q, cuGetProcAddress, cuGetProcAddress_v2);
	if (!alone.rc && alone.fn[1] != rows)
		alone.fn[1] = expected(alone.fn[1]);
	if (memcmp(&alone, &ours, sizeof(alone)) != 0)
		abort();
	return 0;
}
