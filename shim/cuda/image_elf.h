/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "kernel_images.h"

/* Finds the kernel with this hash of its name. *k points into `elf`. False: not there or not
 * whole. */
bool elf_find_kernel(const uint8_t *elf, size_t bytes, uint64_t name, struct image_kernel *k);
