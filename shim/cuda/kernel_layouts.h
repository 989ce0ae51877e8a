/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about each launched kernel: its name, and the words of its parameters that can hold
 * addresses. Taken from the driver or the code (kernel_images.h) at the first launch, then looked
 * up by handle. Application threads, any lock held; no lock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tensor_lists.h"

/* Words of 8 bytes of one parameter, at addresses that are multiples of 8 in the kernel's buffer.
 */
struct kernel_part {
	uint16_t parameter; /* number */
	uint16_t skip;	    /* bytes of it before the first word */
	uint16_t words;
	uint16_t offset; /* of the first word in the buffer of all parameters */
};

struct kernel {
	uint32_t name[2];	   /* STRING, generation that it belongs to */
	uint16_t is_read;	   /* 0: not all of its parameters are known */
	uint16_t reduces;	   /* PyTorch's reduction: offset_tables.h */
	uint32_t count;		   /* parts */
	uint32_t name_size;	   /* bytes of its name, which follows the parts */
	struct tensor_lists lists; /* in one of its first parameters */
	struct kernel_part parts[];
};

/* NULL: no room for it. Valid as long as the process lives. */
struct kernel *kernel_of(const void *function);

uint32_t kernel_name(struct kernel *k); /* STRING */

/* The driver gave out this handle: a CUkernel's or a CUfunction's. */
void kernel_saw_handle(const void *function, bool is_kernel);
/* The same, with the module or library, and the kernel's name in it. */
void kernel_saw_named(const void *function, bool is_kernel, const void *code, const char *name);
void kernel_saw_function_of(const void *function, const void *kernel);
void kernel_forget_all(void); /* code was unloaded: handles can be reused */
