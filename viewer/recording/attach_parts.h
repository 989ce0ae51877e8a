/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that attach to a process. */
#pragma once

#include <sys/types.h>

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
