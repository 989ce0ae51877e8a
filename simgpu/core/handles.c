/* SPDX-License-Identifier: Apache-2.0
 *
 * Handles: zeroed memory after a mark and a kind, by which a wrong handle is noticed. Any thread.
 */
#include <stdlib.h>
#include "sim.h"

#define HANDLE_MARK 0x73696d68616e646cull

struct handle_head {
	uint64_t mark;
	uint32_t kind;
	uint32_t spare;
};

void *sim_handle(uint32_t kind, size_t bytes)
{
	struct handle_head *h = calloc(1, sizeof(*h) + bytes);

	if (!h)
		return NULL;
	h->mark = HANDLE_MARK;
	h->kind = kind;
	return h + 1;
}

void *sim_handle_check(void *handle, uint32_t kind)
{
	struct handle_head *h = handle;

	if ((uintptr_t)handle < 65536 || (uintptr_t)handle % 8)
		return NULL;
	return h[-1].mark == HANDLE_MARK && h[-1].kind == kind ? handle : NULL;
}

void sim_handle_free(void *handle)
{
	struct handle_head *h = handle;

	if (!handle)
		return;
	h[-1].mark = 0;
	free(h - 1);
}
