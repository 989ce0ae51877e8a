/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory by class at every event: each block's bytes come with its birth, move from class to class
 * when a fact of the moment changes (it is saved for backward, or let go), and leave with its
 * death. After every event the sums are what the model's curve says, and what `live` says there.
 *
 * A scan over the tables of a model that has settled; no event is read again.
 */
#pragma once

#include "../classes/classify.h"
#include "repeats.h"

enum series_kind {
	SERIES_BORN,
	SERIES_LEFT,   /* one class, and at once */
	SERIES_JOINED, /* another one */
	SERIES_STATE,  /* a fact changed, and the class is the same: no bytes */
	SERIES_DIED
};

struct series_change {
	uint64_t seq, time_ns; /* of the event */
	uint32_t life;
	int device;
	enum series_kind kind;
	enum category category;
	unsigned state; /* enum life_state, after the event */
	int64_t bytes;	/* more or less in that class */
};

/* The framework's cache, and the whole device. */
struct series_device {
	uint64_t reserved, driver, context, free_bytes;
};

struct series_event {
	uint64_t seq, time_ns;
	const struct lives_mark *mark;	     /* or NULL */
	const struct series_device *devices; /* MODEL_DEVICES, after it */
};

/* Any may be NULL. Without `change` no class is asked for. */
struct series_sink {
	/* A birth or a death on any layer. */
	void (*life)(void *ctx, uint32_t life, bool ended);
	void (*change)(void *ctx, const struct series_change *c);
	/* Before `change`: what an event says of a life that has a class. */
	void (*said)(void *ctx, uint32_t life, enum life_change change, uint64_t seq);
	/* After the first event, and after each that changed something or is a mark. */
	void (*event)(void *ctx, const struct series_event *e);
	void *ctx;
};

struct series {
	struct model *model;
	struct classifier *classifier; /* with `change` */
	int device;		       /* whose changes are wanted; < 0: all */
	const uint64_t *moments;       /* in order: only what lived after one of these events */
	size_t moment_count;	       /* 0: all */
	uint64_t since;		       /* also what was born after this event, 0 = no more */
	uint64_t until;		       /* the last event, 0 = of the recording */
	const struct repeats *leave;   /* lives of these steps are left out; NULL: none */
	const struct repeats *same;    /* in these steps a life has the class of its twin */
};

void series_run(const struct series *s, const struct series_sink *sink);

/* It counts on its device: a block of the framework where there are any, else what CUDA gave. */
bool series_counts(const struct model *m, const struct position *born);
/* A life as it was after those changes, for the rules; its class. */
struct verdict series_verdict(struct classifier *c, struct model *m, uint32_t life, unsigned state,
			      struct block *b);
