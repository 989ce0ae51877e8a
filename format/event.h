/* SPDX-License-Identifier: Apache-2.0 */
/* An event and a definition: the records that hooks produce and commands read. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An event. Members that a kind does not carry (records.def) are 0; device is -1. */
struct gmt_event {
	uint64_t seq;	  /* order in the process, from 1; a gap is an event that was dropped */
	uint64_t time_ns; /* CLOCK_MONOTONIC, nanoseconds */
	uint64_t addr;	  /* device or host address, or a handle */
	uint64_t size;	  /* bytes */
	uint64_t arg0;	  /* by kind */
	uint64_t arg1;	  /* by kind */
	uint64_t stream;  /* CUDA stream (handle or framework's id), 0 = default */
	uint32_t stack;	  /* id of a STACK definition, 0 = none */
	uint32_t thread;  /* id of a THREAD definition */
	uint32_t name;	  /* id of a STRING definition, 0 = none */
	uint32_t scope;	  /* ordinal of the running backward node's evaluation, 0 = none */
	uint16_t kind;	  /* enum gmt_kind */
	uint16_t flags;	  /* enum gmt_flag */
	int32_t device;	  /* CUDA ordinal, -1 = none or unknown */
};

/* Variable-length data that events refer to by id. The payload's layout is in FORMAT.md. */
struct gmt_def {
	uint32_t kind; /* enum gmt_def_kind */
	uint32_t id;
	uint32_t len; /* bytes of payload */
	const void *payload;
};

#define GMT_WRITER_TEXT 16u

/* Identity of the process that made a file, and the version of this program; part of its header.
 * Two processes with the same pid, in two containers, differ by their start times. */
struct gmt_origin {
	uint64_t start;		      /* of the process, clock ticks since boot; 0 = not known */
	char writer[GMT_WRITER_TEXT]; /* "0.2.0", padded with zeros */
} __attribute__((packed));
