/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only rule for "stable": whether the peak of an unfinished run is also the peak of its
 * remaining part, as far as the part so far can show. A unit is a training step; if the program
 * does not train, it is a second of work on the device.
 */
#ifndef VIEWER_STABLE_H
#define VIEWER_STABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stable_unit {
	uint64_t peak; /* bytes, in this unit */
	double seconds;
};

struct stable_wish {
	size_t units;	/* to see after the latest rise, and after anything unusual */
	double seconds; /* to look for, in units of usual length */
};

enum stable_says {
	STABLE_NOT_YET,
	STABLE_YES,
	STABLE_RISES, /* the peak rises all the time */
};

struct stable {
	enum stable_says says;
	size_t risen;	/* the unit that raised the peak last, from 1 */
	uint64_t each;	/* bytes by which a unit raises it, where that goes on; else 0 */
	double usual;	/* seconds of a unit */
	double seconds; /* that were looked at: the units, if all were as long as usual */
};

/* `since`: units before something unusual that this rule cannot see (memory ran out); `room`: bytes
 * by which the peak may still rise on this card. */
struct stable stable_judge(const struct stable_unit *units, size_t count, size_t since,
			   uint64_t room, const struct stable_wish *wish);

/* Is a unit, or the time since the last one ended, much longer than the others? */
bool stable_unusual(double seconds, double usual);

/* How many units there are until memory runs out, counted from the first; 0: it does not rise. */
uint64_t stable_ends(uint64_t count, uint64_t each, uint64_t room);
/* Does a rise that ends then matter, or is it too slow? */
bool stable_matters(uint64_t count, uint64_t ends);

#endif
