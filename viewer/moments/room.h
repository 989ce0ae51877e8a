/* SPDX-License-Identifier: Apache-2.0 */
/* What was free at a moment: in the framework's cache, in pieces, and on the device. */
#ifndef VIEWER_ROOM_H
#define VIEWER_ROOM_H

#include "../model/model.h"

struct room {
	bool sampled;	   /* the device said how much it has, or how much of it is free */
	uint64_t total;	   /* on the device, 0 = unknown */
	uint64_t free;	   /* on the device */
	uint64_t reserved; /* by the framework's cache; without one what is allocated */
	uint64_t cached;   /* of that not in use, */
	uint64_t hole;	   /* the largest piece of it */
};

struct room room_at(const struct moment *mo);

#endif
