/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams and events, and their part in recordings, for the files of core/.
 */
#pragma once

#include "devices.h"
#include "work.h"
#include "pending.h"

#define STREAM_KIND SIM_KIND('S', 'T', 'R', '1')
#define EVENT_KIND  SIM_KIND('E', 'V', 'T', '1')

#define EVENT_NO_TIMING	   2u
#define EVENT_INTERPROCESS 4u
#define ERR_CAPTURED_EVENT 907

struct recording; /* a graph being recorded: stream_capture.c */

struct sim_stream {
	struct sim_ctx *ctx;
	int device;
	unsigned int flags; /* 1: does not wait for the legacy stream */
	int priority;
	unsigned long long id;
	uint64_t end;		      /* when all its work ends, in ns: clock.c */
	bool collectives;	      /* some of its work is collective */
	struct recording *capture;    /* recording that gets its work, or NULL */
	struct node_list ends;	      /* nodes that its next work waits for */
	struct sim_stream *next_same; /* next stream of the recording */
	uint64_t pending;	      /* number of the last pending work on it; pending.h */
};

struct sim_event {
	unsigned int flags;
	int device;
	uint64_t recorded;	    /* the moment, in ns; 0 = never */
	unsigned long long capture; /* id of the recording it was recorded in, or 0 */
	uint64_t pending;	    /* copy of its stream's */
	struct node_list ends;	    /* copy of its stream's, in that recording */
	bool collective;	    /* recorded on a stream with collectives */
	bool unmet;		    /* was queried too early: pollers.c */
	struct sim_event *next_unmet;
};

struct sim_stream *stream_find(void *handle); /* NULL: not a stream */
bool stream_is_default(const struct sim_stream *s);
struct sim_stream *stream_legacy(int device);

int capture_spoil(struct sim_stream *s, int error); /* the recording fails; returns error */
int capture_join(struct sim_stream *s, const struct sim_event *e);
void capture_note(struct sim_stream *s, struct sim_event *e); /* e is recorded on s */
void capture_forget(struct sim_stream *s);		      /* it is being destroyed */
unsigned long long capture_id(const struct sim_stream *s);    /* 0: not recording */
bool capture_lives(unsigned long long id);
