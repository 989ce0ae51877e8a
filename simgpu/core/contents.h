/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known of the values in device memory (contents.c), and what a kernel's arguments say of
 * them (arguments.c).
 */
#ifndef SIMGPU_CONTENTS_H
#define SIMGPU_CONTENTS_H

#include "core.h"

/* Assumed values count as known: that masks are all true, that choices are spread evenly. What a
 * kernel makes of known values is known, and assumed if any that it has looked at was. */
enum contents_state {
	CONTENTS_UNKNOWN,
	CONTENTS_GUESS,
	CONTENTS_ALL_TRUE,
	CONTENTS_EVEN,
	CONTENTS_KNOWN
};
void contents_begin(void);	 /* this thread comes to the next kernel */
void contents_assume(int state); /* it has looked at such a value, or makes one */
/* A number (of up to 16 bytes) of what begins at `base`; false if it is not known, but a guess or
 * zero. */
bool contents_look(void *dst, const void *base, size_t offset, size_t bytes);
void contents_write(void *dst, const void *src, size_t bytes, bool known);
/* Any range: data (zero where it is unknown), and of each byte what is known of it. */
void contents_read(const void *src, void *data, unsigned char *states, size_t bytes);
void contents_store(void *dst, const void *data, const unsigned char *states, size_t bytes);
struct pending;
/* What is still wanted of the result of such work (pending.h); `at`: from its base. */
void contents_result(const struct pending *p, size_t at, const void *data,
		     const unsigned char *states, size_t bytes);
void contents_forget(uintptr_t addr, size_t bytes); /* it was written, with what is not known */
void contents_from_host(uintptr_t dst, const void *src, size_t bytes);
int contents_least(uintptr_t addr, size_t bytes); /* what is known of the byte least known */
int contents_to_host(void *dst, uintptr_t src, size_t bytes);
void contents_on_device(uintptr_t dst, uintptr_t src, size_t bytes);
void contents_fill(uintptr_t dst, uint32_t pattern, size_t bytes); /* as struct extent has it */
bool contents_any(void);
void contents_drop(uintptr_t base, size_t bytes); /* memory was freed */
/* The next stretch of [base + *at, base + bytes) in which something may be known: sets its offset
 * and length; false if there is none. */
bool contents_next(const void *base, size_t bytes, size_t *at, size_t *length);
/* arguments.c */
void contents_launch(void **args);		    /* a kernel takes these arguments */
void contents_scan(const void *data, size_t bytes); /* or these packed ones */
void contents_wipe(void);			    /* after a kernel that was computed */
size_t contents_reach(const void *p); /* bytes up to the end of this thread's stack; 0: not on it */
/* Arguments that were kept are taken for a part of it, until it is said that there are none. */
void contents_kept(const void *from, size_t bytes);
size_t arguments_addresses(void **args, uintptr_t *out, size_t most); /* in the device's memory */

#endif
