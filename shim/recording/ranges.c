/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers and records of ranges. Any thread; two relaxed atomics and gmt_capture.
 */
#include "ranges.h"

#include "../../format/record.h"

static uint32_t last;

uint32_t range_number(void)
{
	uint32_t number = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);

	return number ? number : range_number();
}

void range_record(enum gmt_kind kind, enum gmt_range source, uint32_t number, uint32_t name)
{
	struct gmt_event e = {
		.kind = (uint16_t)kind,
		.arg0 = number,
		.arg1 = source,
		.name = name,
		.device = -1,
	};

	gmt_capture(&e);
}
