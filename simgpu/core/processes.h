/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory that each process holds of the devices that it shares (processes.c). Devices are
 * physical ones.
 */
#pragma once

#include "sim.h"

#define PROCESSES 256 /* that may share the devices */

struct process_part {
	uint32_t pid;
	uint64_t bytes;
};

size_t processes_bytes(void);			/* of the table */
void processes_begin(void *table);		/* the file of usage.c has it */
void processes_open(void);			/* this process has a part of it from now on */
void processes_hold(int device, uint64_t used); /* so much is this process's */
/* The other processes' memory. Where it is more than expected, those that have ended are looked for
 * and left out. */
uint64_t processes_others(int device, uint64_t expected);
uint64_t processes_held(int device); /* by all that live */
/* This process first. Returns how many there are, which may be more than `most`. */
unsigned int processes_list(int device, struct process_part *out, unsigned int most);

/* ---- other_process.c: any process of the machine ---- */
/* False if it has ended. Its processor time (with that of children it has waited for) and its
 * start, in ticks; 0: not known. */
bool process_lives(int pid, uint64_t *used, uint64_t *start);
uint64_t process_family_used(int pid); /* processor time with that of all its children */
