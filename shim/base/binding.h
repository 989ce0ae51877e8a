/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The running binding: the C++ function that Python called for an operator of PyTorch. Until it
 * returns, the frames outside it do not change, Python's and native ones. So the second of two
 * stacks taken during the same call needs to be walked only up to the binding.
 */
#pragma once

#include <stdint.h>

struct binding {
	uintptr_t at;	 /* an address in its frame; 0 = none is running, or it is not known */
	uint64_t number; /* counts the bindings that began on this thread */
};
