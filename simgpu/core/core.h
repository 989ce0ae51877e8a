/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by all of core/: result codes beyond those of sim.h.
 */
#pragma once

#include <pthread.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>
#include "sim.h"

enum {
	ERR_DEINITIALIZED = 4,
	ERR_INVALID_CONTEXT = 201,
	ERR_CONTEXT_IN_USE = 216,
	ERR_OPERATING_SYSTEM = 304,
	ERR_PEER_ALREADY = 704,
	ERR_PEER_NOT_ENABLED = 705,
	ERR_NOT_FOUND = 500,
	ERR_CONTEXT_DESTROYED = 709,
	ERR_HOST_REGISTERED = 712,
	ERR_HOST_NOT_REGISTERED = 713,
	ERR_ILLEGAL_STATE = 401,
	ERR_CAPTURE_UNSUPPORTED = 900,
	ERR_CAPTURE_INVALIDATED = 901,
	ERR_CAPTURE_MERGE = 902,
	ERR_CAPTURE_UNMATCHED = 903,
	ERR_CAPTURE_UNJOINED = 904,
	ERR_CAPTURE_IMPLICIT = 906,
	ERR_CAPTURE_WRONG_THREAD = 908,
	ERR_UPDATE = 910,
};

/* gettid() came with glibc 2.30. */
static inline pid_t thread_id(void)
{
	return (pid_t)syscall(SYS_gettid);
}
