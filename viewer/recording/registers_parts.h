/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registers of a stopped thread, and how to call a function with them: everything that depends on
 * the processor.
 */
#pragma once

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

/* Sets the registers as at a function's entry, returning to `trap`. `pushed` must be written at
 * registers_stack. */
void registers_call(struct registers *r, uint64_t function, const uint64_t arguments[6],
		    uint64_t trap, uint64_t *pushed);
uint64_t registers_stack(const struct registers *r);
uint64_t registers_pc(const struct registers *r);
uint64_t registers_result(const struct registers *r);
bool registers_trapped(const struct registers *r, uint64_t trap);

/* Code of the new thread's start routine, which is copied into the target. Its argument is a struct
 * thread_data. */
extern const unsigned char attach_code[], attach_code_end[];

struct thread_data {
	uint64_t pthread_self, pthread_detach, Py_IsInitialized, PyGILState_Ensure,
		PyRun_SimpleString, PyGILState_Release;
	uint64_t id;	/* written by pthread_create */
	uint64_t state; /* returned by PyGILState_Ensure */
	char source[];
};
