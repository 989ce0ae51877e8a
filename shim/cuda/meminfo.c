/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of the device's free memory, which show how much no recorded call allocated. Application
 * threads, inside a hook; queries the driver about the current context and makes none.
 */
#include "meminfo.h"
#include "../../format/record.h"
#include "../base/os.h"
#include "cuda_device.h"

#define LEAST_NS 10000000ull

static bool too_soon(void)
{
	static uint64_t last;
	uint64_t now = os_now(), then = __atomic_load_n(&last, __ATOMIC_RELAXED);

	if (now - then < LEAST_NS)
		return true;
	return !__atomic_compare_exchange_n(&last, &then, now, false, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED);
}

/* During a capture some calls are forbidden to a thread; in CUDA_CAPTURE_RELAXED none are. */
static void exchange_mode(int *mode)
{
	typeof(&cuThreadExchangeStreamCaptureMode) exchange =
		MAYBE_DRIVER(cuThreadExchangeStreamCaptureMode);

	if (exchange)
		exchange(mode);
}

static bool read_info(size_t *unused, size_t *total)
{
	typeof(&cuMemGetInfo_v2) ask = MAYBE_DRIVER(cuMemGetInfo_v2);
	int mode = CUDA_CAPTURE_RELAXED, rc;

	exchange_mode(&mode);
	rc = ask ? ask(unused, total) : CUDA_NOT_INITIALIZED;
	exchange_mode(&mode);
	return rc == 0;
}

bool meminfo_sample(bool now)
{
	typeof(&cuCtxGetCurrent) current = MAYBE_DRIVER(cuCtxGetCurrent);
	struct gmt_event e = { .kind = GMT_MEMINFO };
	void *context = NULL;
	size_t unused, total;

	if (!current || (too_soon() && !now))
		return false;
	if (current(&context) || !context || !read_info(&unused, &total))
		return false;
	e.device = device_of_driver();
	e.arg0 = unused;
	e.arg1 = total;
	gmt_capture(&e);
	return true;
}
