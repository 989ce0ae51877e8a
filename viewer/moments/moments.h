/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the event that a user names with --at, while the events are read. */
#pragma once

#include "../model/model.h"
#include "../recording/recording.h"

/* Bytes in use at that moment. A bounded recording might have left out blocks of its peak. */
uint64_t moments_bytes(const struct model *m, const struct moment *mo);
/* Whether the recording has only a state: blocks that existed, and no allocation or free. */
bool moments_state_only(const struct model *m);
/* " at 1.83 s", to follow a description; ", a state at one moment" if there are no times. */
const char *moments_when(const struct model *m, uint64_t seq, uint64_t time_ns, char *buf,
			 size_t room);
#define MOMENTS_WHEN 40 /* bytes of such a text */

enum moment_kind { AT_PEAK = 1, AT_END, AT_OOM, AT_TIME, AT_MARK };

struct moment_query {
	const char *text;
	enum moment_kind kind;
	uint64_t time_ns;
	bool since_start; /* time_ns counts from the first event */
	const char *name; /* of a mark */
	size_t name_len;
	uint64_t nth; /* occurrence of the mark, from 1 */

	uint64_t seen; /* occurrences so far */
	uint64_t seq;  /* the event, if `found` */
	uint64_t ns;   /* its time */
	bool found;
};

/* Parses text, which must outlive q. 0, or EXIT_USAGE after an error message. */
int moments_parse(const char *text, struct moment_query *q);

/* Reads all events: fills m and, unless q is NULL, q->seq. Free m in any case. 0, or an exit code
 * after an error message. */
int moments_read(struct recording *r, struct model *m, struct moment_query *q);

/* The event that q means on that device, after moments_read. 0, or EXIT_USAGE after a message. */
int moments_resolve(const struct model *m, int device, const struct moment_query *q, uint64_t *seq);

/* wanted < 0: the device with the highest peak. 0, or EXIT_USAGE after an error message. */
int moments_device(const struct recording *r, const struct model *m, long wanted, int *device);

/* Fills mo with the moment that q means on that device, from a settled model. Returns the same. */
int moments_take(const struct recording *r, struct model *m, struct moment *mo,
		 const struct moment_query *q, long device);
