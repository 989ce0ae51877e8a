/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's entry point for the benches, in an object of its own: the library leaves its own
 * frames out of a stack, so who measures stacks must stand outside.
 */
#include "../../shim/capture.h"

__attribute__((visibility("default"))) void bench_event(uint16_t kind, uint64_t i);

void bench_event(uint16_t kind, uint64_t i)
{
	struct gmt_event e = { .kind = kind,
			       .addr = 0x7f0000000000 + (i << 9),
			       .size = 512 * (i % 9) };

	gmt_capture(&e);
}
