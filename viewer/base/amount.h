/* SPDX-License-Identifier: Apache-2.0 */
/* A limit as people write it: "2%", "64MiB", "1.5 GB", "4096". */
#ifndef VIEWER_AMOUNT_H
#define VIEWER_AMOUNT_H

#include <stdbool.h>
#include <stdint.h>

struct amount {
	bool percent;
	double value; /* percent, or bytes */
};

bool amount_parse(const char *text, struct amount *a);

/* In bytes, a share being of `all`. */
uint64_t amount_bytes(const struct amount *a, uint64_t all);

#endif
