/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams and schemas in Python's capsules (the Arrow PyCapsule interface), without a header of an
 * interpreter, so that one library serves all versions. A capsule that nobody took the struct out
 * of ends it; the interpreter calls that with its lock held.
 */
#include <stdlib.h>

#include "arrow_abi.h"
#include "gpumemtrace.h"

#define OFFERED __attribute__((visibility("default")))

OFFERED const char gpumemtrace_stream_name[] = "arrow_array_stream";
OFFERED const char gpumemtrace_schema_name[] = "arrow_schema";

static void *(*pointer_of)(void *capsule, const char *name);

OFFERED void gpumemtrace_capsule_getter(void *(*getter)(void *capsule, const char *name))
{
	pointer_of = getter;
}

OFFERED void gpumemtrace_stream_free(struct ArrowArrayStream *stream)
{
	if (stream && stream->release)
		stream->release(stream);
	free(stream);
}

OFFERED void gpumemtrace_stream_end(void *capsule)
{
	gpumemtrace_stream_free(pointer_of(capsule, gpumemtrace_stream_name));
}

OFFERED void gpumemtrace_schema_end(void *capsule)
{
	struct ArrowSchema *s = pointer_of(capsule, gpumemtrace_schema_name);

	if (s && s->release)
		s->release(s);
	free(s);
}
