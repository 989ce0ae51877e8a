/* SPDX-License-Identifier: Apache-2.0
 *
 * Use of each device, now and at its peak, for the tool that started the program: usage.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

void usage_open(void);
/* Sets this process's bytes on a physical device of `room` bytes. False if other processes leave no
 * room for them; the caller then sets the old number. */
bool usage_hold(int device, uint64_t used, uint64_t room);
/* NCCL's memory in this process now: simulated, least, most. */
void usage_nccl(uint64_t taken, uint64_t least, uint64_t most);
/* Bytes of a convolution's workspace: simulated, and the most that one of its kernels would want.
 * measured: on a card of this kind. */
void usage_convolution(uint64_t taken, uint64_t most, bool measured);
void usage_module(void); /* a module of compiled kernels is loaded */
void usage_work(void);	 /* work is given to a device */
void usage_refused(void);
void usage_asked(void); /* the program queries free memory */
