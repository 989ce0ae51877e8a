/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "kernel_images.h"

/* The kernel whose name has this hash, with name and attributes; they lie in `elf`. */
bool elf_find_kernel(const uint8_t *elf, size_t bytes, uint64_t name, struct image_kernel *k);
