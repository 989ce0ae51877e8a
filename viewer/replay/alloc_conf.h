/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of PyTorch's caching allocator, as in PYTORCH_CUDA_ALLOC_CONF. Independent of any
 * recording.
 */
#pragma once

#include "../base/usual.h"

#define MIB	  (1ull << 20)
#define INTERVALS 16 /* size intervals from 1 MiB on, each twice the one before */

struct alloc_settings {
	uint64_t max_split;	/* larger blocks are not split; UINT64_MAX: all are */
	uint64_t rounding;	/* most bytes by which such a block can exceed the request */
	uint64_t large_segment; /* bytes of a segment for requests below 10 MiB */
	double threshold; /* share of allowed memory that starts garbage collection; 0 = none */
	double fraction;  /* allowed share of the device; 0 = all */
	uint32_t divisions[INTERVALS];
	bool expandable;
};

#define SETTINGS_WHY 160
/* Reads text as that release of PyTorch does: 206 = 2.6, 0 = the latest known. Returns NULL, or
 * `why` with the error and its place. */
const char *settings_parse(struct alloc_settings *s, const char *text, unsigned release,
			   char why[SETTINGS_WHY]);

/* A requested size, rounded as the allocator does. */
uint64_t settings_round(const struct alloc_settings *s, uint64_t bytes);
/* Size of a new segment for a block of that size, without expandable segments. */
uint64_t settings_segment(const struct alloc_settings *s, uint64_t bytes);
