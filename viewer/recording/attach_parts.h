/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that attach to a process. */
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include "attach.h"

/* Functions of the target's C library and interpreter; addresses in the target. */
#define TARGET_LIBC(X)    \
	X(mmap)           \
	X(pthread_create) \
	X(pthread_self)   \
	X(pthread_detach)
#define TARGET_PYTHON(X)      \
	X(Py_IsInitialized)   \
	X(PyGILState_Ensure)  \
	X(PyRun_SimpleString) \
	X(PyGILState_Release)
#define TARGET_FUNCTIONS(X) TARGET_LIBC(X) TARGET_PYTHON(X)

struct target {
	pid_t pid;
	int memory; /* /proc/PID/mem */
#define FUNCTION(name) uint64_t name;
	TARGET_FUNCTIONS(FUNCTION)
#undef FUNCTION
	uint64_t trap;		     /* an instruction that stops a traced thread */
	uint64_t python, python_end; /* the interpreter's code */
};

/* Fills the target. false: `why` says what is missing. */
bool target_open(struct target *t, pid_t pid, char why[ATTACH_WHY]);
void target_close(struct target *t);
bool target_read(const struct target *t, uint64_t at, void *into, size_t len);
bool target_write(const struct target *t, uint64_t at, const void *from, size_t len);

/* A stopped thread that holds no lock of the C library. */
struct stopped {
	pid_t tid;
	struct saved *saved; /* its registers and signal mask */
};

enum stop { STOP_READY, STOP_BUSY, STOP_FORBIDDEN };

/*
 * Registers of a stopped thread, and how to call a function with them: everything that depends on
 * the processor.
 */

enum { VECTORS_MAX = 16384 };

struct registers {
	struct user_regs_struct general;
	unsigned char vectors[VECTORS_MAX] __attribute__((aligned(64)));
	size_t vectors_len;
};

bool registers_get(pid_t tid, struct registers *r);
bool registers_set(pid_t tid, const struct registers *r);

/* Sets the registers as at the entry of a function that returns to `trap`. The caller must write
 * `pushed` to registers_stack. */
void registers_call(struct registers *r, uint64_t function, const uint64_t arguments[6],
		    uint64_t trap, uint64_t *pushed);
#if defined(__x86_64__)
#define registers_pc(r)	       ((r)->general.rip)
#define registers_result(r)    ((r)->general.rax)
#define registers_stack(r)     ((r)->general.rsp)
#define registers_behind(trap) ((trap) + 1) /* the program counter after the stop */
#else
#define registers_pc(r)	       ((r)->general.pc)
#define registers_result(r)    ((r)->general.regs[0])
#define registers_stack(r)     ((r)->general.sp - sizeof(uint64_t)) /* still unused */
#define registers_behind(trap) (trap)
#endif

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
