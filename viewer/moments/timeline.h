/* SPDX-License-Identifier: Apache-2.0 */
/* A recording with its steps, for commands about steps and modules. */
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
	char text[INSTANT_MAX];	    /* the whole text */
	size_t line;	  /* bytes of " (loss.py:41)", behind an operator, at the end of both */
	const char *with; /* the word before it in a sentence: "in ", "at "; NULL: none */
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
	struct classifier *classifier; /* made by timeline_classifier, or NULL */
	int device;
	bool framework;
};

/* device < 0: the one with the highest peak. 0, or an exit code after an error message. */
int timeline_open(struct timeline *t, struct recording *r, long device);
/* The same; also finds the event that q means, see moments.h. */
int timeline_open_at(struct timeline *t, struct recording *r, long device, struct moment_query *q);
/* The same, but if no device memory was used its device is -1, without a message. */
int timeline_open_any(struct timeline *t, struct recording *r);
/* Opens the names alone; the caller provides the model. */
void timeline_open_names(struct timeline *t, struct recording *r);
void timeline_close_names(struct timeline *t);
/* Reads the events only, without steps or a device. Same return values. */
int timeline_read(struct timeline *t, struct recording *r, struct moment_query *q);
/* The classifier of its blocks, made once, because it keeps what stacks show. */
struct classifier *timeline_classifier(struct timeline *t);
/* Memory by class at every event on this device; for `moments` see struct series. */
void timeline_series(struct timeline *t, const struct series_sink *sink, const uint64_t *moments,
		     size_t count);
void timeline_close(struct timeline *t);

/* Selects a device: measures its spans and finds its steps. */
void timeline_look(struct timeline *t, int device);
/* Looks names up again, because the recording has more libraries than before. */
void timeline_rename(struct timeline *t);
/* For callers that pass the events to the model themselves, and then call timeline_look. */
void timeline_begin(struct timeline *t, struct recording *r);

/* The words for a block's class at an event, which can be in a later step than its birth. */
const char *timeline_class_words(const struct timeline *t, unsigned category, const struct block *b,
				 uint64_t seq);

/* The extent with the run's highest peak, of the step or part with index *step. */
const struct extent *timeline_peak(const struct timeline *t, size_t *step);
