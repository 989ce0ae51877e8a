/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by all sources of ranges: numbers that are unique in the process, and their records. Any
 * thread, any lock held.
 */
#pragma once

#include "../../format/record.h"
#include "../capture.h"

uint32_t range_number(void); /* never 0 */
void range_record(enum gmt_kind kind, enum gmt_range source, uint32_t number, uint32_t name);
