/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries about the device. They go to the driver if it has the answer, because it keeps no error
 * that the program could then find. Application threads, inside a hook, any lock held. Nothing here
 * makes a context.
 */
#include "cuda_device.h"

#include <stdio.h>
#include <string.h>

#define DESCRIBED_MAX 64

int device_of_driver(void)
{
	typeof(&cuCtxGetDevice) ask = MAYBE_DRIVER(cuCtxGetDevice);
	int device = -1;

	return ask && !ask(&device) ? device : -1;
}

int device_current(const struct call *c)
{
	typeof(&cudaGetDevice) ask;
	int device = -1;

	if (c->driver)
		return device_of_driver();
	ask = REAL_RUNTIME(c->caller, cudaGetDevice);
	return ask && !ask(&device) ? device : -1;
}

bool device_capturing(uint64_t stream)
{
	typeof(&cuStreamIsCapturing) ask = MAYBE_DRIVER(cuStreamIsCapturing);
	int status = 0;

	/* The default streams cannot be captured, and to query them meanwhile is an error. */
	return stream > 2 && ask && !ask((void *)stream, &status) && status == CUDA_CAPTURE_ACTIVE;
}

static void record_fact(int device, const char *what, const char *text)
{
	char key[64];

	snprintf(key, sizeof(key), "device.%d.%s", device, what);
	gmt_meta(key, text, strlen(text));
}

static void tell_number(int device, const char *what, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	record_fact(device, what, text);
}

/* Versions are written as people know them: 12080 is 12.8. */
static void tell_version(const char *key, int version)
{
	char text[24];

	snprintf(text, sizeof(text), "%d.%d", version / 1000, version % 1000 / 10);
	gmt_meta(key, text, strlen(text));
}

static void tell_names(int device)
{
	typeof(&cuDeviceGetName) name = MAYBE_DRIVER(cuDeviceGetName);
	typeof(&cuDeviceGetPCIBusId) bus = MAYBE_DRIVER(cuDeviceGetPCIBusId);
	typeof(&cuDeviceGetUuid) id = MAYBE_DRIVER(cuDeviceGetUuid);
	uint8_t uuid[16] = { 0 };
	char text[256] = "";

	if (name && !name(text, sizeof(text) - 1, device))
		record_fact(device, "name", text);
	memset(text, 0, sizeof(text));
	if (bus && !bus(text, 64, device))
		record_fact(device, "pci_bus_id", text);
	if (!id || id(uuid, device))
		return;
	for (int i = 0, n = 0; i < 16; i++)
		n += snprintf(text + n, 4, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
			      uuid[i]);
	record_fact(device, "uuid", text);
}

static void tell_numbers(int device)
{
	typeof(&cuDeviceTotalMem_v2) total = MAYBE_DRIVER(cuDeviceTotalMem_v2);
	typeof(&cuDeviceGetAttribute) ask = MAYBE_DRIVER(cuDeviceGetAttribute);
	int sms = 0, major = 0, minor = 0;
	size_t bytes = 0;
	char text[24];

	if (total && !total(&bytes, device))
		tell_number(device, "total_bytes", bytes);
	if (!ask)
		return;
	if (!ask(&sms, CUDA_SM_COUNT, device))
		tell_number(device, "sm_count", (uint64_t)sms);
	if (ask(&major, CUDA_CAPABILITY_MAJOR, device) ||
	    ask(&minor, CUDA_CAPABILITY_MINOR, device))
		return;
	snprintf(text, sizeof(text), "%d.%d", major, minor);
	record_fact(device, "compute_capability", text);
}

static void tell_versions(const struct call *c)
{
	typeof(&cuDriverGetVersion) driver = MAYBE_DRIVER(cuDriverGetVersion);
	typeof(&cudaRuntimeGetVersion) runtime = NULL;
	int version = 0;

	if (driver && !driver(&version))
		tell_version("driver.version", version);
	if (!c->driver)
		runtime = REAL_RUNTIME(c->caller, cudaRuntimeGetVersion);
	if (runtime && !runtime(&version))
		tell_version("runtime.version", version);
}

/* Sets the device's bit; false: it was set before. A forked child begins anew. */
static bool set_once(uint64_t *done, uint32_t *generation, int device)
{
	uint64_t bit = 1ull << (device % DESCRIBED_MAX);

	if (__atomic_exchange_n(generation, gmt_generation(), __ATOMIC_RELAXED) != gmt_generation())
		__atomic_store_n(done, 0, __ATOMIC_RELAXED);
	return !(__atomic_load_n(done, __ATOMIC_RELAXED) & bit) &&
	       !(__atomic_fetch_or(done, bit, __ATOMIC_RELAXED) & bit);
}

void device_describe(const struct call *c, int device)
{
	static uint64_t done;
	static uint32_t generation;

	if (!set_once(&done, &generation, device))
		return;
	tell_names(device);
	tell_numbers(device);
	tell_versions(c);
}

void device_tell_contexts(const struct call *c, int but)
{
	typeof(&cuDevicePrimaryCtxGetState) ask = MAYBE_DRIVER(cuDevicePrimaryCtxGetState);
	static uint64_t done;
	static uint32_t generation;
	unsigned flags;
	int active;

	for (int d = 0; ask && d < DESCRIBED_MAX && !ask(d, &flags, &active); d++) {
		if (!active || d == but || !set_once(&done, &generation, d))
			continue;
		device_describe(c, d);
		tell_number(d, "context", 1);
	}
}

uint64_t driver_range_size(uint64_t address)
{
	typeof(&cuMemGetAddressRange_v2) ask = MAYBE_DRIVER(cuMemGetAddressRange_v2);
	uint64_t base = 0;
	size_t size = 0;

	return address && ask && !ask(&base, &size, address) ? size : 0;
}
