/* SPDX-License-Identifier: Apache-2.0 */
/* Only facts that a run has once are signs. Ranks of one run may have commands of their own, and
 * hosts; what one of the two does not say is no difference. */
#include "ranks_differ.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/human.h"

static bool other_fact(const struct rank_file *a, const struct rank_file *b, size_t fact, char *why,
		       size_t room)
{
	const char *x = a->facts[fact], *y = b->facts[fact];

	if (!*x || !*y || !strcmp(x, y))
		return false;
	/* A host has many names for itself. */
	if (fact == JOB_MASTER_ADDR && (ranks_is_local(x) || ranks_is_local(y)))
		return false;
	/* Each has its own stand-in for the other ranks. */
	if (fact == JOB_MASTER_PORT && a->by_itself && b->by_itself)
		return false;
	snprintf(why, room, "%s is %.80s in %.200s and %.80s in %.200s", ranks_job_key(fact), x,
		 a->path, y, b->path);
	return true;
}

/* Both met at an address of their own host. */
static bool other_host(const struct rank_file *a, const struct rank_file *b, char *why, size_t room)
{
	if (!a->job_is_local || !b->job_is_local || !a->host[0] || !b->host[0] ||
	    !strcmp(a->host, b->host) || (a->by_itself && b->by_itself) ||
	    !ranks_is_local(a->facts[JOB_MASTER_ADDR]) ||
	    !ranks_is_local(b->facts[JOB_MASTER_ADDR]))
		return false;
	snprintf(why, room,
		 "MASTER_ADDR is the host itself, which is %s of %.200s and %s of %.200s", a->host,
		 a->path, b->host, b->path);
	return true;
}

/* Ranks wait for each other before they begin. */
static bool other_time(const struct rank_file *a, const struct rank_file *b, char *why, size_t room)
{
	char later[HUMAN_MAX];

	if (a->rank < 0 || b->rank < 0 || !a->pid || !b->pid || (a->by_itself && b->by_itself) ||
	    llabs(a->start_ns - b->start_ns) <= RANKS_LONGEST_START)
		return false;
	snprintf(why, room, "%.200s began %s after %.200s",
		 a->start_ns > b->start_ns ? a->path : b->path,
		 human_seconds(later, (uint64_t)llabs(a->start_ns - b->start_ns)),
		 a->start_ns > b->start_ns ? b->path : a->path);
	return true;
}

bool ranks_differ(const struct rank_file *a, const struct rank_file *b, char *why, size_t room)
{
	for (size_t i = 0; i < JOB_FACTS; i++)
		if (other_fact(a, b, i, why, room))
			return true;
	return other_host(a, b, why, room) || other_time(a, b, why, room);
}
