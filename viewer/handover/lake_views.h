/* SPDX-License-Identifier: Apache-2.0 */
/* The ready questions of a lake (views.sql). */
#ifndef VIEWER_LAKE_VIEWS_H
#define VIEWER_LAKE_VIEWS_H

#include "../stacks/defs.h"

struct lake_view {
	char name[64];
	struct defs_text meaning, sql;
};

/* Ready question i; false: there are no more. */
bool lake_view(size_t i, struct lake_view *v);

#endif
