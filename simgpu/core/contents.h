/* SPDX-License-Identifier: Apache-2.0
 *
 * Known values in device memory (contents.c), and the addresses among a kernel's arguments
 * (arguments.c).
 */
#pragma once

#include "core.h"

/* Assumed values count as known: masks that are all true, choices that are spread evenly, counts
 * that an unknown kernel kept. A computed kernel's result is known if its inputs are, and assumed
 * if any input that it read was. */
enum contents_state {
	CONTENTS_UNKNOWN,
	CONTENTS_GUESS,
	CONTENTS_ALL_TRUE,
	CONTENTS_EVEN,
	CONTENTS_KEPT,
	CONTENTS_KNOWN
};
void contents_begin(void);	 /* this thread begins its next kernel */
void contents_assume(int state); /* the kernel read or produced this state */
/* assume.c: whether a likely value replaces an unknown one; false if zero is wanted. */
bool assumes(enum contents_state what);
bool assumes_anything(void);
/* Reads a number (of up to 16 bytes) at an offset from `base`. False if any of it is a guess or
 * unknown; unknown bytes read as zero. */
bool contents_look(void *dst, const void *base, size_t offset, size_t bytes);
void contents_write(void *dst, const void *src, size_t bytes, bool known); /* else a guess */
/* Reads any range: data (zero where unknown), and the state of each byte. */
void contents_read(const void *src, void *data, unsigned char *states, size_t bytes);
void contents_store(void *dst, const void *data, const unsigned char *states, size_t bytes);
/* Turns the states of inputs into those of a result: a known byte gets the least known state that
 * the kernel has read. Guesses stay guesses. All are unknown if `known` is false. */
void contents_computed(unsigned char *states, size_t bytes, bool known);
struct pending;
/* Stores the part of a pending result (pending.h) that nothing has overwritten since; `at` is an
 * offset from its base. */
void contents_result(const struct pending *p, size_t at, const void *data,
		     const unsigned char *states, size_t bytes);
void contents_forget(uintptr_t addr, size_t bytes); /* overwritten with unknown values */
void contents_from_host(uintptr_t dst, const void *src, size_t bytes);
int contents_least(uintptr_t addr, size_t bytes);	      /* state of the least known byte */
int contents_to_host(void *dst, uintptr_t src, size_t bytes); /* 0, or 719 as pending_wait() */
void contents_on_device(uintptr_t dst, uintptr_t src, size_t bytes);
void contents_fill(uintptr_t dst, uint32_t pattern, size_t bytes); /* pattern: see extent */
bool contents_any(void);
void contents_drop(uintptr_t base, size_t bytes); /* memory was freed */
/* The next stretch of [base + *at, base + bytes) in which something may be known: sets its offset
 * and length; false if there is none. */
bool contents_next(const void *base, size_t bytes, size_t *at, size_t *length);
/* progress.c: report work given to the device, and data that was copied to it, computed or read. */
void progress_work(uint64_t what);
void progress_data(const void *data, size_t bytes);
/* Reports a read of a value that is not computed. True after 1,000 reads and 5 s of mere
 * repetition. */
bool progress_none(const void *src);
/* kept_counts.c: an unknown kernel got this address as an argument. */
void counts_may_write(uintptr_t addr);
void counts_copied(uintptr_t addr, const void *data, size_t bytes); /* from the host */
void counts_launch(void);					    /* a kernel was launched */
/* arguments.c */
void contents_launch(void **args);		    /* arguments of an uncomputed kernel */
void contents_scan(const void *data, size_t bytes); /* the same, packed */
void contents_wipe(void);			    /* clears the stack after a computed kernel */
size_t contents_reach(const void *p); /* bytes to the end of the stack; 0: not on it */
/* Declares a copy of a kernel's arguments as part of this thread's stack, until the next call. */
void contents_kept(const void *from, size_t bytes);
size_t arguments_addresses(void **args, uintptr_t *out, size_t most); /* device addresses in args */
