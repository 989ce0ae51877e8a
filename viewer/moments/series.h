/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory by class at every event: each block's bytes come with its birth, move from class to class
 * when a fact of the moment changes (it is saved for backward, or let go), and leave with its
 * death. After every event the sums are what the model's curve says, and what `live` says there.
 *
 * A class may rest on what is only known later (a leaf, an end in backward), so a first run over
 * the events decides, when a block dies, what it was in each state it had been in: 4 bytes a block
 * are kept. Every later run replays the events with the answers at hand.
 */
#ifndef VIEWER_SERIES_H
#define VIEWER_SERIES_H

#include "../classes/classify.h"
#include "../recording/recording.h"

struct series_change {
	uint64_t seq, time_ns; /* of the event */
	int device;
	enum category category;
	int64_t bytes;		   /* more or less in that class */
	const struct block *block; /* good for this call only; its birth's seq is its identity */
};

/* Either may be NULL. */
struct series_sink {
	void (*change)(void *ctx, const struct series_change *c);
	/* After each event of the recording and its changes; m is the model after it. */
	void (*event)(void *ctx, const struct gmt_event *e, const struct model *m);
	void *ctx;
};

struct series {
	struct recording *recording;
	bool framework[MODEL_DEVICES]; /* its blocks count there, not driver allocations */
	uint32_t *codes; /* of each block in order of birth: a class for each state, 4 bits each */
	size_t count, room;
};

/* The first run. facts has replayed the whole recording; it and owners are asked in this run only.
 * 0, or a sentence was said and the exit code. */
int series_open(struct series *s, struct recording *r, const struct model *facts,
		struct owners *owners);
void series_close(struct series *s);

/* The same inside of somebody else's run: m is a fresh model, and series_look is told of each event
 * that it has seen. series_end comes after the last one, before m is freed. */
struct series_replay;
struct series_replay *series_begin(struct series *s, struct recording *r, const struct model *facts,
				   struct owners *owners, struct model *m);
void series_look(struct series_replay *r, const struct gmt_event *e);
void series_end(struct series_replay *r);

/* One run over the events, all devices. 0, or a sentence was said and the exit code. */
int series_run(struct series *s, const struct series_sink *sink);

#endif
