/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes from processes under `gpumemtrace run`, in a memory file of this size that `run` makes and
 * names in GMT_NOTES. They are the only source of `run`'s summary. Writers only add; each field is
 * updated by one atomic addition. Not part of a recording.
 */
#pragma once

#include <stdint.h>

#define GMT_NOTES	   "GPUMEMTRACE_NOTES"
#define GMT_NOTES_MAGIC	   0x3145544f4e544d47ull
#define GMT_NOTES_PROGRAMS 64u

/* Set by `run -o` if recordings with the names of this run exist: the latest of their change times
 * (ctime), in ns. A process replaces a recording that has not changed since. */
#define GMT_REPLACE "GPUMEMTRACE_REPLACE"

struct gmt_notes {
	uint64_t magic;
	uint32_t loaded; /* programs that the library was loaded into */
	uint32_t off;	 /* those of them in which it is switched off */
	uint32_t failed; /* recordings that could not be begun */
	int32_t error;	 /* errno of the first failure */
	uint32_t recordings;
	uint32_t refused;		       /* failed requests for device memory */
	uint32_t files_used;		       /* bytes; can exceed the size of files */
	char programs[GMT_NOTES_PROGRAMS][16]; /* names of the first ones */
	char failed_path[4096];		       /* of the first recording that failed */
	char files[(1u << 18) - 4096 - 40 - 16 * GMT_NOTES_PROGRAMS]; /* paths, each ended by 0 */
};
