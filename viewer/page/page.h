/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data of one page. For each track (a device of a recording) page_*.c write two JSON documents.
 * The first is small and has what the first picture needs: facts, the peak, and a coarse curve
 * whose points are exact. The page draws it before the browser has read the rest. The page's own
 * scripts (page/assets) read nothing else. Every part has a size limit: page_curve.h, page_lives.h
 * and page_names.h describe what is kept and what is summed up.
 */
#pragma once

#include "../base/emit.h"
#include "../moments/timeline.h"
#include "../oom/summary.h"
#include "page_curve.h"
#include "page_lives.h"
#include "page_names.h"
#include "page_write.h"

#define PAGE_TRACKS 64

struct page {
	struct emit *first, *out;  /* the two documents */
	struct names words, names; /* of these documents */
	struct redact *redact;	   /* or NULL */
	size_t tracks;		   /* tracks that share the room */
	size_t written;		   /* tracks written so far, each with its peak */
	uint64_t peaks[PAGE_TRACKS];
	double scale; /* 1, or less if the page became too large */
};

/* Makes the two documents of a page. write() writes members of both, and is called again with less
 * room if they are too large. The caller frees the documents. */
void page_make(struct page_text *text, struct redact *redact, void (*write)(struct page *, void *),
	       void *ctx);

/* Emits the median peak and the tracks whose peak is an outlier. */
void page_strays_emit(struct page *p);

/* A track's share of a number of rows, but not below `least`. */
size_t page_room(const struct page *p, size_t rows, size_t least);

enum track_parts {
	TRACK_WHOLE, /* every panel of a run's page */
	TRACK_CURVE, /* facts, memory over time, steps, marks; nothing about single blocks */
};

/* An event that a chart marks. */
struct track_mark {
	enum { MARK_OOM, MARK_RETRY, MARK_RANGE } kind;
	const struct lives_mark *event;
};

struct track {
	struct page *page;
	enum track_parts parts;
	struct recording *recording;
	struct timeline *timeline; /* of this device */
	struct summary summary;	   /* for TRACK_WHOLE */
	struct page_curve curve;
	struct page_lives blocks;
	struct track_mark *marks;
	size_t mark_count, mark_room;
	uint64_t marks_left_out;
	uint64_t ooms;
	size_t oom_key;	   /* index of the latest one's key moment */
	struct map stacks; /* stack of this recording -> node of the page */
};

/* Writes the timeline's device as an object in each document. */
void track_write(struct page *p, struct timeline *timeline, enum track_parts parts);

/* Parts of it, one file each. */
void segments_emit(struct track *t);
/* Emits cached memory that only its private pools can use, or that waits for other streams. */
void page_apart_emit(struct emit *out, struct names *names, const struct pool_sums *pools,
		     const struct room *room);
void marks_find(struct track *t); /* adds key moments for out of memory */
void marks_emit(struct track *t);
uint64_t marks_first_oom(const struct track *t); /* its time, 0 = none */
void page_lives_emit(struct track *t);
void page_facts_emit(struct track *t);
void page_summary_find(struct track *t); /* adds key moments for its findings */
void page_summary_emit(struct track *t);
void page_steps_emit(struct track *t);
void page_account_emit(struct track *t);
void page_leaks_emit(struct track *t);
void page_oom_emit(struct track *t);

/* The node of a stack of the track's recording. */
uint32_t track_stack(struct track *t, uint32_t stack, uint64_t seq);
