/* SPDX-License-Identifier: Apache-2.0 */
/* What a freed block of PyTorch's allocator waits for on other streams. */
#pragma once

#include "../capture.h"

/* After the event of a free; `hook` as for gmt_capture_from. And when a block was handed out. */
void reuse_free(const struct gmt_event *freed, const void *hook);
void reuse_alloc(void);
