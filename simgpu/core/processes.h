/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that each process holds on the shared devices (processes.c). Device numbers are physical.
 */
#pragma once

#include "sim.h"

#define PROCESSES 256 /* most that can share the devices */

struct process_part {
	uint32_t pid;
	uint64_t bytes;
};

size_t processes_bytes(void);			/* size of the table */
void processes_begin(void *table);		/* mapped from the file of usage.c */
void processes_open(void);			/* this process takes a part of the table */
void processes_hold(int device, uint64_t used); /* sets this process's bytes */
/* Bytes of the other processes. If they are more than expected, ended ones are removed first. */
uint64_t processes_others(int device, uint64_t expected);
uint64_t processes_held(int device); /* by all live processes */
/* Fills `out`, this process first. Returns the number of processes, which may exceed `most`. */
unsigned int processes_list(int device, struct process_part *out, unsigned int most);

/* ---- other_process.c: any process of the machine ---- */
/* False if it has ended. Sets its processor time (with that of children it waited for) and its
 * start, both in clock ticks; 0: not known. */
bool process_lives(int pid, uint64_t *used, uint64_t *start);
uint64_t process_family_used(int pid); /* ticks used or waited for, with its descendants */
