/* SPDX-License-Identifier: Apache-2.0 */
/* A birth that was noted earlier: is its block still there? */
#include "study.h"

struct history *study_alive(struct study *st, const struct study_birth *at)
{
	struct history *h = NULL;

	if (at->seq && at->device >= 0 && at->device < MODEL_DEVICES)
		h = live_find(&st->m->devices[at->device].live, at->addr);
	return h && h->block.seq == at->seq ? h : NULL;
}
