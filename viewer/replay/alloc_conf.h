/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of PyTorch's caching allocator, as PYTORCH_CUDA_ALLOC_CONF has them. Holds nothing
 * of any recording.
 */
#ifndef VIEWER_REPLAY_SETTINGS_H
#define VIEWER_REPLAY_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MIB	  (1ull << 20)
#define INTERVALS 16 /* of sizes, from 1 MiB on, each twice the one before */

struct alloc_settings {
	uint64_t max_split;	/* larger blocks are not split; UINT64_MAX: all are */
	uint64_t rounding;	/* so much larger may such a block be than what is asked for */
	uint64_t large_segment; /* bytes of a segment for what is below 10 MiB */
	double threshold;	/* of the allowed memory; 0 = nothing is collected */
	double fraction;	/* of the device that is allowed; 0 = all */
	uint32_t divisions[INTERVALS];
	bool expandable;
};

/* NULL, or why the text is none: what and where, in the buffer. */
#define SETTINGS_WHY 160
const char *settings_parse(struct alloc_settings *s, const char *text, char why[SETTINGS_WHY]);
/* The same as that release of PyTorch reads it: 206 = 2.6, 0 = the latest that is known. */
const char *settings_parse_as(struct alloc_settings *s, const char *text, unsigned release,
			      char why[SETTINGS_WHY]);

/* What is asked for, as the allocator rounds it. */
uint64_t settings_round(const struct alloc_settings *s, uint64_t bytes);
/* Bytes of the segment that is made for a block of so many, without expandable segments. */
uint64_t settings_segment(const struct alloc_settings *s, uint64_t bytes);

#endif
