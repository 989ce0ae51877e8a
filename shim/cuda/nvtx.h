/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX ranges and marks as a source of events.
 */
#pragma once

void nvtx_setup(void); /* once, in the constructor */
