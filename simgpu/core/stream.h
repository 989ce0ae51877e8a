/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams, events and recordings as the files of core/ see them.
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
	uint64_t end;		      /* of all work on it: clock.c */
	bool collectives;	      /* it carries some */
	struct recording *capture;    /* NULL, or what its work is recorded to */
	struct node_list ends;	      /* nodes there that its next work waits for */
	struct sim_stream *next_same; /* streams of one recording */
	uint64_t pending;	      /* last work of others that it waits for; pending.h */
};

struct sim_event {
	unsigned int flags;
	int device;
	uint64_t recorded;	    /* the moment, in ns; 0 = never */
	unsigned long long capture; /* id of the recording it was recorded in, or 0 */
	uint64_t pending;	    /* as its stream's */
	struct node_list ends;	    /* nodes there that it stands for */
	bool collective;	    /* on a stream that carries some */
	bool unmet;		    /* pollers.c */
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
