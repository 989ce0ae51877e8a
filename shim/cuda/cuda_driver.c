/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks of the CUDA driver, made from the rows of hooks.def; those that need more are in
 * cuda_driver_own.c. Application threads, any lock held.
 */
#include "hook_body.h"

/* CUarray_format: the low numbers are plain elements, the high ones block-compressed and video. */
static uint64_t format_bytes(int format)
{
	switch (format) {
	case 0x01: /* unsigned and signed 8-bit */
	case 0x08:
		return 1;
	case 0x02: /* 16-bit integers and half */
	case 0x09:
	case 0x10:
		return 2;
	case 0x03: /* 32-bit integers and float */
	case 0x0a:
	case 0x20:
		return 4;
	default:
		return 1;
	}
}

static uint64_t array_bytes(const struct cuda_array *a)
{
	return a ? at_least_1(a->width) * at_least_1(a->height) * a->channels *
			       format_bytes(a->format)
		 : 0;
}

static uint64_t array3d_bytes(const struct cuda_array3d *a, unsigned levels)
{
	if (!a)
		return 0;
	return extent_cells((struct cuda_extent){ a->width, a->height, a->depth }, levels) *
	       a->channels * format_bytes(a->format);
}

#define DRIVER(symbol, base, version, per_thread, proto, args, effect) \
	BODY(DRIVER_CALL, symbol, proto, args, effect)
#include "../hooks.def"
