/* SPDX-License-Identifier: Apache-2.0 */
/* The recorded run's own allocator: its settings, and the features of its PyTorch. */
#ifndef VIEWER_REPLAY_OWN_H
#define VIEWER_REPLAY_OWN_H

#include "../recording/defs.h"
#include "replay.h"

struct replay_own {
	char *conf; /* "default" where there is none */
	struct alloc_settings settings;
	char why[SETTINGS_WHY]; /* why the default stands in for it; "": it does not */
	unsigned release;	/* of PyTorch: 206 = 2.6, 0 = not known */
	bool whole_pools;	/* see struct replay_limits */
};

void replay_own(struct replay_own *own, const struct defs *defs);
void replay_own_free(struct replay_own *own);

#endif
