/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated device finds this function by its name, and calls it when a program copies values
 * to the host that were not computed; its own one does nothing. Application threads.
 */
#include "../../format/record.h"
#include "../capture.h"

#include <stddef.h>
#include <stdint.h>

__attribute__((visibility("default"))) int simgpuValueNotComputed(const void *address, size_t bytes,
								  int state);

int simgpuValueNotComputed(const void *address, size_t bytes, int state)
{
	struct gmt_event e = {
		.kind = GMT_VALUE,
		.addr = (uintptr_t)address,
		.size = bytes,
		.arg0 = (uint64_t)state,
		.device = -1,
	};
	int depth;

	if (!gmt_recording())
		return 0;
	depth = gmt_enter();
	gmt_leave();
	if (depth == 0)
		gmt_capture(&e);
	return 0;
}
