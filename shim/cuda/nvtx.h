/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX ranges and marks as a source of events.
 */
#ifndef GMT_NVTX_H
#define GMT_NVTX_H

void nvtx_setup(void); /* once, in the constructor */

#endif
