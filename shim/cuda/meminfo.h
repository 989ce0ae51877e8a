/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

/* Records free and total bytes of the device; not more often than every 10 ms unless `now`. */
bool meminfo_sample(bool now); /* true: it was recorded */
