/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How little memory the same requests could do with, if all were known beforehand: never less than
 * the live peak, and so much with an address planned for every block.
 */
#pragma once

#include "replay_requests.h"

struct packing {
	uint64_t lower_bound; /* the most bytes alive at once */
	uint64_t packed;      /* the need of a plan */
};

void packing_make(struct packing *p, const struct requests *r);
