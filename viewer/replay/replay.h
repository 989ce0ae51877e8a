/* SPDX-License-Identifier: Apache-2.0 */
/* Replays requests in the model of the allocator, with one setting after the other. */
#pragma once

#include "allocator.h"
#include "replay_requests.h"

/* Reserved bytes from an event on; `event` counts the events of blocks, from 0. */
struct replay_level {
	uint64_t event, reserved;
};

struct replay_outcome {
	uint64_t peak_bytes, peak_reserved_bytes, retries, ooms;
	uint64_t agree, events; /* events; agree: those with the recorded reserved bytes */
	struct replay_level *levels;
	size_t level_count, level_room;
};

struct replay_limits {
	uint64_t capacity; /* 0: as on the recording's device */
	uint64_t stop_at;  /* ends as soon as so much is reserved; 0 = at the end */
	bool keep_levels;
	bool whole_pools; /* private pools have expandable segments (PyTorch from 2.6 on) */
};

/* Finds requested sizes where blocks might be larger, and private pools, from the recorded
 * allocator's behaviour. Called once, before any replay. */
void replay_study(struct requests *r, const struct alloc_settings *own);

void replay_run(struct replay_outcome *o, const struct requests *r, const struct alloc_settings *s,
		const struct replay_limits *limits);
void replay_outcome_free(struct replay_outcome *o);

/* One setting and its outcome. */
struct replay_try {
	const char *conf;
	struct alloc_settings settings;
	struct replay_outcome outcome;
};

/* Writes CSV: reserved bytes for each setting, a line per change. Needs levels. */
void replay_curve(FILE *f, const struct replay_try *tries, size_t count);

/* The memory that the same requests need if all are known beforehand. */
struct packing {
	uint64_t lower_bound; /* the most bytes alive at once */
	uint64_t packed;      /* with an address planned for every block */
};

void packing_make(struct packing *p, const struct requests *r);
