/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about each kernel that was launched: its name, and the words of its parameters that can
 * hold addresses. Asked of the driver, or of the code (kernel_images.h), at the first launch, then
 * looked up by the handle. Application threads, any lock held; no lock.
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
	uint32_t is_read;	   /* 0: the driver does not say where its parameters lie */
	uint32_t count;		   /* parts */
	uint32_t name_size;	   /* of its name, which stands behind the parts */
	struct tensor_lists lists; /* in one of its first parameters */
	struct kernel_part parts[];
};

/* NULL: nothing can be known of it (no room, a driver without these functions). */
struct kernel *kernel_of(const void *function);

uint32_t kernel_name(struct kernel *k); /* STRING */

/* Handles of these kinds were given out: the two have different functions to ask. */
void kernel_saw_handle(const void *function, bool is_kernel);
/* Also said: the module or library, and the name in it. */
void kernel_saw_named(const void *function, bool is_kernel, const void *code, const char *name);
void kernel_saw_function_of(const void *function, const void *kernel);
void kernel_forget_all(void); /* code was unloaded: handles may come again */
