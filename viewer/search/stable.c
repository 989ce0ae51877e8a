/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stable: the peak was last raised in the first half of the units, at least the wished number of
 * units ago, and those units took long enough. A rise that may recur has then been waited for as
 * long as it took to occur.
 *
 * The units after the first must be stable by themselves. An early peak, such as the first step's,
 * may hide a leak below it.
 *
 * Rising: three of the last four eighths of the units raised the peak. This finds a slow leak, one
 * in bursts, and one with a garbage collector. Such a run is followed three times as long, and
 * longer if memory would run out within as many units again. A rise that leaves room for a million
 * more units does not matter: the run is stable, and the rise is reported.
 */
#include "stable.h"

#include <stdlib.h>

#include "../base/need.h"

#define EIGHTHS	  8
#define LATEST	  4	  /* of the eighths */
#define RISING	  3	  /* of the latest */
#define LONGER	  3	  /* a rise is followed this many times as long */
#define FEWEST	  32	  /* units needed to detect a continuing rise */
#define FAR	  1000000 /* units */
#define UNUSUAL	  3	  /* times as long as the usual unit, */
#define UNUSUAL_S 2	  /* and seconds */

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The median duration. */
static double usual_seconds(const struct stable_unit *units, size_t count)
{
	double *all = need_new((count + 1) * sizeof(*all)), usual;

	for (size_t i = 0; i < count; i++)
		all[i] = units[i].seconds;
	qsort(all, count, sizeof(*all), by_size);
	usual = all[count / 2];
	free(all);
	return usual;
}

bool stable_unusual(double seconds, double usual)
{
	return seconds > UNUSUAL * usual && seconds > UNUSUAL_S;
}

/* Rise of the peak per unit in each of the latest eighths, ascending. */
static void latest_rises(const struct stable_unit *units, size_t count, double rises[LATEST])
{
	uint64_t most = 0, before = 0;
	size_t from = 0;

	for (size_t i = 0, part = 0; i < count; i++) {
		most = units[i].peak > most ? units[i].peak : most;
		if (i + 1 < (part + 1) * count / EIGHTHS)
			continue;
		if (part >= EIGHTHS - LATEST)
			rises[part - (EIGHTHS - LATEST)] =
				(double)(most - before) / (double)(i + 1 - from);
		before = most;
		from = i + 1;
		part++;
	}
	qsort(rises, LATEST, sizeof(*rises), by_size);
}

uint64_t stable_ends(uint64_t count, uint64_t each, uint64_t room)
{
	return each ? count + room / each : 0;
}

bool stable_matters(uint64_t count, uint64_t ends)
{
	return ends && ends - count < FAR;
}

/* Number of the last unit that exceeds all before it, from 1. */
static size_t last_rise(const struct stable_unit *units, size_t count, uint64_t *most)
{
	size_t risen = 0;

	*most = 0;
	for (size_t i = 0; i < count; i++)
		if (units[i].peak > *most) {
			*most = units[i].peak;
			risen = i + 1;
		}
	return risen;
}

static bool is_long_ago(size_t risen, size_t count, const struct stable_wish *wish)
{
	return count >= risen + wish->units && count >= 2 * risen;
}

/* Decides about a peak that was raised recently. */
static enum stable_says judge_rise(struct stable *s, const struct stable_unit *units, size_t count,
				   uint64_t room, const struct stable_wish *wish)
{
	double rises[LATEST], left;

	if (count < FEWEST)
		return STABLE_NOT_YET;
	latest_rises(units, count, rises);
	if (!(rises[LATEST - RISING] > 0))
		return STABLE_NOT_YET;
	s->each = (uint64_t)((rises[LATEST / 2 - 1] + rises[LATEST / 2]) / 2);
	s->each = s->each ? s->each : 1;
	if ((double)room > FAR * rises[LATEST - 1])
		return STABLE_YES;
	left = (double)room / (double)s->each;
	return s->seconds >= LONGER * wish->seconds && left > (double)count && left < FAR
		       ? STABLE_RISES
		       : STABLE_NOT_YET;
}

struct stable stable_judge(const struct stable_unit *units, size_t count, size_t since,
			   uint64_t room, const struct stable_wish *wish)
{
	struct stable s = { .usual = count ? usual_seconds(units, count) : 0 };
	uint64_t most, later;

	for (size_t i = since; i < count; i++)
		if (stable_unusual(units[i].seconds, s.usual))
			since = i + 1;
	s.risen = last_rise(units, count, &most);
	s.seconds = (double)count * s.usual;
	if (s.seconds < wish->seconds || count < since + wish->units || !count)
		return s;
	if (is_long_ago(s.risen, count, wish)) {
		units += s.risen;
		count -= s.risen;
		if (is_long_ago(last_rise(units, count, &later), count, wish)) {
			s.says = STABLE_YES;
			return s;
		}
		room += most - later;
	}
	s.says = judge_rise(&s, units, count, room, wish);
	return s;
}
