/* SPDX-License-Identifier: Apache-2.0
 *
 * How much of each device is and ever was used, for whoever started the program: usage.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

void usage_open(void);
/* This process is to hold so much of a physical device. False if there is no room, beside others.
 */
bool usage_hold(int device, uint64_t used, uint64_t room);
/* NCCL's memory in this process now: simulated, least, most. */
void usage_nccl(uint64_t taken, uint64_t least, uint64_t most);
/* The workspace of a convolution: simulated, the most that one of its kernels would want, and
 * whether such were measured on a card of this kind. */
void usage_convolution(uint64_t taken, uint64_t most, bool measured);
void usage_module(void); /* of kernels that the program compiled is loaded */
void usage_work(void);	 /* a device is given some */
void usage_refused(void);
void usage_asked(void); /* the program wants to know what is free */
