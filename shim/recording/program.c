/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a recorded program may ask of the library by itself: python/gpumemtrace/_program.py calls
 * these functions by name, and so may any program. Application threads, any lock held; they never
 * begin a recording, never block, never fail.
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

/* An instant with a name; bytes behind the first 4096 are left out. */
void gpumemtrace_mark(const char *name)
{
	if (name && gmt_recording())
		range_record(GMT_MARK, GMT_RANGE_PROGRAM, 0,
			     gmt_string(name, strnlen(name, NAME_MOST)));
}

/* From here to the matching resume events of all threads carry no stacks, which are most of an
 * event's cost. Events themselves are recorded: what is alive stays exact. */
void gpumemtrace_pause(void)
{
	session_pause();
}

/* One too many changes nothing. */
void gpumemtrace_resume(void)
{
	session_resume();
}

/* The file that this process writes, until it ends or forks; NULL if it has recorded nothing. */
const char *gpumemtrace_recording(void)
{
	return session_is_here() ? output_get()->path : NULL;
}
