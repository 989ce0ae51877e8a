/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of the library for the recorded program: python/gpumemtrace/_program.py calls them by
 * name, and any program can. Application threads, any lock held; they never begin a recording,
 * never block, never fail.
 */
#include "output.h"
#include "../../format/record.h"
#include "ranges.h"
#include "session.h"

#include <string.h>

#define NAME_MOST 4096

#define OFFERED __attribute__((visibility("default")))

OFFERED void gpumemtrace_mark(const char *name);
OFFERED void gpumemtrace_pause(void);
OFFERED void gpumemtrace_resume(void);
OFFERED const char *gpumemtrace_recording(void);

/* Marks an instant with a name, of which the first 4096 bytes are kept. */
void gpumemtrace_mark(const char *name)
{
	if (name && gmt_recording())
		range_record(GMT_MARK, GMT_RANGE_PROGRAM, 0,
			     gmt_string(name, strnlen(name, NAME_MOST)));
}

/* Until the matching resume, events of all threads carry no stacks, which are most of an event's
 * cost. The events themselves are recorded, so live memory stays exact. */
void gpumemtrace_pause(void)
{
	session_pause();
}

/* A call without a matching pause changes nothing. */
void gpumemtrace_resume(void)
{
	session_resume();
}

/* Path of the file that this process records into, valid until it ends or forks; NULL = none. */
const char *gpumemtrace_recording(void)
{
	return session_is_here() ? output_get()->path : NULL;
}
