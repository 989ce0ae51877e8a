/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registers of a stopped thread, and a function call made of them: all that differs from one kind
 * of processor to the next.
 */
#ifndef VIEWER_REGISTERS_PARTS_H
#define VIEWER_REGISTERS_PARTS_H

#include <sys/user.h>

#include "attach_parts.h"

enum { VECTORS_MAX = 16384 };

struct registers {
	struct user_regs_struct general;
	unsigned char vectors[VECTORS_MAX] __attribute__((aligned(64)));
	size_t vectors_len;
};

bool registers_get(pid_t tid, struct registers *r);
bool registers_set(pid_t tid, const struct registers *r);

/* As at the entry of the function; it returns to `trap`. `pushed` is what must stand at
 * registers_stack. */
void registers_call(struct registers *r, uint64_t function, const uint64_t arguments[6],
		    uint64_t trap, uint64_t *pushed);
uint64_t registers_stack(const struct registers *r);
uint64_t registers_pc(const struct registers *r);
uint64_t registers_result(const struct registers *r);
bool registers_trapped(const struct registers *r, uint64_t trap);

/* The start routine of the thread that is made in the target; it is copied there. Its argument is a
 * struct thread_data. */
extern const unsigned char attach_code[], attach_code_end[];

struct thread_data {
	uint64_t pthread_self, pthread_detach, Py_IsInitialized, PyGILState_Ensure,
		PyRun_SimpleString, PyGILState_Release;
	uint64_t id;	/* what pthread_create writes */
	uint64_t state; /* what PyGILState_Ensure said */
	char source[];
};

#endif
