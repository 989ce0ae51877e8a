/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tensors in the variables of Python frames: the names and shapes of a line's operands. All
 * reads are system calls that cannot fault, so this is for rare moments. Application threads, any
 * lock held, GIL held or not.
 */
#pragma once

#include "../../format/record.h"
#include "../rings/thread.h"
#include "python.h"

struct variable {
	struct gmt_variable head; /* without the name */
	uint64_t sizes[GMT_VARIABLE_DIMS];
	uint64_t storage; /* its address */
};

/* Whether the Python object at this address, if there is one, is a tensor on a device. */
typedef bool variable_reader(uintptr_t object, struct variable *out);

/* Sets the function that reads tensors, once a session; NULL: no variables are recorded. */
void variables_read_by(variable_reader *reader);

#define VARIABLES_SEEN 64 /* objects at one refusal */
struct variables_seen {
	uintptr_t objects[VARIABLES_SEEN];
	unsigned count;
};

/* Records a frame's tensors, if it has any. seen: at a refusal, also those in lists and in
 * attributes of objects, each object once; else NULL. buf holds GMT_DEF_MAX bytes. */
void variables_record(struct thread *t, const struct python_frame *frame, uint32_t node,
		      struct variables_seen *seen, uint8_t *buf);

/* True once for each node, up to a limit; a node that shares its bit with another is left out. */
bool variables_are_new(uint32_t node);
/* true for a process's first refusals. */
bool variables_of_refusal(void);
void variables_forget(void);
