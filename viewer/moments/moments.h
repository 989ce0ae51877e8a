/* SPDX-License-Identifier: Apache-2.0 */
/* Which event a moment is: what a user writes after --at, found in the first run over the events.
 */
#pragma once

#include "../model/model.h"
#include "../recording/recording.h"

/* The recording has a state only: blocks that were there, and none that came or went. */
/* In use at that moment: at the peak of a bounded recording its blocks may have been left out. */
uint64_t moments_bytes(const struct model *m, const struct moment *mo);
bool moments_state_only(const struct model *m);
/* " at 1.83 s" behind what was then; ", a state at one moment" where there is no time. */
const char *moments_when(const struct model *m, uint64_t seq, uint64_t time_ns, char *buf,
			 size_t room);
#define MOMENTS_WHEN 40 /* bytes of such a text */

enum moment_kind { AT_PEAK = 1, AT_END, AT_OOM, AT_TIME, AT_MARK };

struct moment_query {
	const char *text;
	enum moment_kind kind;
	uint64_t time_ns;
	bool since_start; /* time_ns counts from the first event */
	const char *name; /* of a mark, */
	size_t name_len;
	uint64_t nth; /* its occurrence, from 1 */

	uint64_t seen; /* occurrences so far */
	uint64_t seq;  /* found, if `found`, */
	uint64_t ns;   /* and its time */
	bool found;
};

/* 0, or a sentence was said and EXIT_USAGE. */
int moments_parse(const char *text, struct moment_query *q);

/* One run: fills m and, where q is not NULL, q->seq. m is to be freed in any case. 0, or a sentence
 * was said and the exit code. */
int moments_read(struct recording *r, struct model *m, struct moment_query *q);

/* The seq that q means on that device after the run. 0, or a sentence and EXIT_USAGE. */
int moments_resolve(const struct model *m, int device, const struct moment_query *q, uint64_t *seq);

/* wanted < 0: the device with the highest peak. 0, or a sentence was said and EXIT_USAGE. */
int moments_device(const struct recording *r, const struct model *m, long wanted, int *device);

/* The moment that q means on that device, of a model that has settled. */
int moments_take(const struct recording *r, struct model *m, struct moment *mo,
		 const struct moment_query *q, long device);
