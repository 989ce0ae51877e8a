/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks of the CUDA runtime, made from the rows of hooks.def. Application threads, any lock held:
 * the real call is made whatever becomes of the record.
 */
#include "hook_body.h"

static uint64_t channels_bytes(const struct cuda_channels *c)
{
	return c ? (uint64_t)(c->x + c->y + c->z + c->w) / 8 : 0;
}

#define RUNTIME(name, proto, args, effect) BODY(RUNTIME_CALL, name, proto, args, effect)
#include "../hooks.def"
