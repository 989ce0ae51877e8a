/* SPDX-License-Identifier: Apache-2.0 */
/* Events that come one upon the other: the drain must keep up, as it does where a program does
 * other things between them. Waits for it, not for a time. */
#pragma once

#include "../../shim/rings/live.h"

#include <unistd.h>

static inline void wait_for_drain(void)
{
	for (uint32_t i = 0; i < live_count(); i++)
		while (live_ring(i) && gmt_ring_used(live_ring(i)) > GMT_RING_SLOTS / 2)
			usleep(200);
}
