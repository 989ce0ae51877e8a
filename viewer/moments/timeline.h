/* SPDX-License-Identifier: Apache-2.0 */
/* A recording with its steps: what the commands that speak of steps and modules open. */
#pragma once

#include "../model/model.h"
#include "../model/steps.h"
#include "../recording/owners.h"
#include "../recording/recording.h"
#include "moments.h"
#include "series.h"

/* A moment in words: "step 2, optimizer step, AdamW _foreach_sqrt". */

#define INSTANT_MAX 1200

struct timeline;

struct instant {
	size_t step; /* 0 = before the first, or after the last */
	enum phase phase;
	char what[INSTANT_MAX / 2]; /* "AdamW _foreach_sqrt"; "" = nothing known */
	char text[INSTANT_MAX];	    /* all of it */
	size_t line;	  /* the last bytes of both: " (loss.py:41)", behind an operator */
	const char *with; /* before it in a sentence: "in ", "at "; NULL: nothing */
};

/* Leaves out the line of code, if an operator stands before it. */
void instant_cut_line(struct instant *at);

/* The instant of the event after which x was at its highest. */
void instant_of_peak(struct instant *out, const struct timeline *t, const struct extent *x);
/* The instant of the highest peak of the run. */
void instant_of_highest(struct instant *out, const struct timeline *t);

/* The operator that the program called, "" if it is not known. */
void instant_operator(struct stacks *s, uint32_t stack, uint64_t seq, char *buf, size_t room);

/* An instant behind a verb: "in step 2, ...", "after the last step, ...", "at train.py:3". Empty if
 * nothing is known. Returns buf. */
const char *instant_phrase(const struct instant *at, char *buf, size_t room);
/* The same as a line of its own: "In step 2, ...". */
const char *instant_line(const struct instant *at, char *buf, size_t room);

struct timeline {
	struct recording *recording;
	struct model model; /* at the end of the run */
	struct steps steps;
	struct stacks stacks;
	struct owners owners;
	struct classifier *classifier; /* timeline_classifier, or NULL */
	int device;
	bool framework;
};

/* device < 0: the one with the highest peak. 0, or a sentence was said and the exit code. */
int timeline_open(struct timeline *t, struct recording *r, long device);
/* The same; which event q means is found on the way, see moments.h. */
int timeline_open_at(struct timeline *t, struct recording *r, long device, struct moment_query *q);
/* The same, and no sentence where no device memory was used: then its device is -1. */
int timeline_open_any(struct timeline *t, struct recording *r);
/* Names alone: who calls it puts a model to them. */
void timeline_open_names(struct timeline *t, struct recording *r);
void timeline_close_names(struct timeline *t);
/* Only the events, where neither steps nor a device are asked for. */
int timeline_read(struct timeline *t, struct recording *r, struct moment_query *q);
/* The classes of its blocks: one for all questions, which keeps what stacks say. */
struct classifier *timeline_classifier(struct timeline *t);
/* Memory by class at every event, on this device; moments: see struct series. */
void timeline_series(struct timeline *t, const struct series_sink *sink, const uint64_t *moments,
		     size_t count);
void timeline_close(struct timeline *t);

/* From now on that device counts: its spans, its steps. */
void timeline_look(struct timeline *t, int device);
/* The recording knows more libraries than before. */
void timeline_rename(struct timeline *t);
/* For who passes the events on to the model himself, and looks then. */
void timeline_begin(struct timeline *t, struct recording *r);

/* The words for the class of a block at an event, which may be a step behind its own. */
const char *timeline_class_words(const struct timeline *t, unsigned category, const struct block *b,
				 uint64_t seq);

/* The whole run's highest extent; the index of its item in *step. */
const struct extent *timeline_peak(const struct timeline *t, size_t *step);
