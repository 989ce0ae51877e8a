/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory by class at every event. A block's bytes are added at its birth, move to another class
 * when its state changes (saved for backward, or released), and are subtracted at its death. After
 * every event the sums equal the model's curve, and the output of `live` there.
 *
 * A scan over the tables of a settled model; no event is read again.
 */
#pragma once

#include "../classes/classify.h"
#include "repeats.h"

enum series_kind {
	SERIES_BORN,
	SERIES_LEFT,   /* left a class, for another or to sleep */
	SERIES_JOINED, /* joined a class, from another or from sleep */
	SERIES_STATE,  /* the state changed, but not the class: 0 bytes */
	SERIES_DIED
};

struct series_change {
	uint64_t seq, time_ns; /* of the event */
	uint32_t life;
	int device;
	enum series_kind kind;
	enum category category;
	unsigned state; /* enum life_state, after the event */
	int64_t bytes;	/* change of that class */
};

/* The framework's cache, and the whole device. */
struct series_device {
	uint64_t reserved, driver, context, free_bytes;
};

struct series_event {
	uint64_t seq, time_ns;
	const struct lives_mark *mark;	     /* its mark, or NULL */
	const struct series_device *devices; /* MODEL_DEVICES of them, after the event */
};

/* Any callback can be NULL. Without `change` no class is computed. */
struct series_sink {
	/* A birth or a death on any layer. */
	void (*life)(void *ctx, uint32_t life, bool ended);
	void (*change)(void *ctx, const struct series_change *c);
	/* Before `change`: what an event does to a life that has a class. */
	void (*said)(void *ctx, uint32_t life, enum life_change change, uint64_t seq);
	/* After the first event, and after each that changed something or is a mark. */
	void (*event)(void *ctx, const struct series_event *e);
	void *ctx;
};

struct series {
	struct model *model;
	struct classifier *classifier; /* needed for `change` */
	int device;		       /* only changes on this device; < 0: on all */
	const uint64_t *moments;       /* in order: only lives that outlast one of these events */
	size_t moment_count;	       /* 0: all */
	uint64_t since;		       /* also lives born after this event, 0 = none */
	uint64_t until;		       /* the last event, 0 = the recording's last */
	/* Lives of these steps are left out, and most changes of others in them; NULL: none. */
	const struct repeats *leave;
	const struct repeats *same; /* in these steps a life has the class of its twin */
};

void series_run(const struct series *s, const struct series_sink *sink);

/* Whether a life counts on its device: a framework's block if there are any, else CUDA's memory. */
bool series_counts(const struct model *m, const struct position *born);
/* Fills b with a life in that state, for the rules; returns its class. */
struct verdict series_verdict(struct classifier *c, struct model *m, uint32_t life, unsigned state,
			      struct block *b);
