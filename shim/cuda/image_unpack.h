/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Unpacks an image of a fat binary: zstd (CUDA 12.8 and later) or LZ4's block format. Returns the
 * bytes at `out`, 0 if the input is not whole. Pure, but for memory that it maps meanwhile. */
size_t image_unpack(uint8_t *out, size_t room, const uint8_t *in, size_t bytes);
