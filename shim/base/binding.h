/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C++ function that Python called for an operator of PyTorch, its binding, while it runs: until
 * it returns, the frames outside it are as they were, Python's and native ones. So of two stacks
 * that are taken within it the second needs to be looked at only from there inward.
 */
#pragma once

#include <stdint.h>

struct binding {
	uintptr_t at;	 /* an address in its frame; 0 = none runs, or it is not known */
	uint64_t number; /* counts those that began on this thread */
};
