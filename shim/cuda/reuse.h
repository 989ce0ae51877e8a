/* SPDX-License-Identifier: Apache-2.0 */
/* The waits of freed blocks of PyTorch's allocator for other streams. */
#pragma once

#include "../capture.h"

/* reuse_free: after the event of a free (`hook` as for gmt_capture_from); reuse_alloc: after a
 * block was handed out. */
void reuse_free(const struct gmt_event *freed, const void *hook);
void reuse_alloc(void);
