/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers of any type, which is named by the letter that C++ mangles it to ("bahstijlmfd"): the
 * mantissa of a long double holds every 64-bit integer.
 */
#ifndef SIMGPU_NUMBERS_H
#define SIMGPU_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int number_size(char type);
long double number_load(char type, const void *p);
void number_store(char type, void *p, long double x);
long double number_cast(char type, long double x); /* as a C cast would */

/* PyTorch's OffsetCalculator for so many pointers: its length in words, how many elements it
 * tells of, and how many bytes from where the pointer `which` leads element i lies. */
size_t steps_words(int pointers);
uint64_t steps_elements(const uint32_t *steps);
size_t steps_offset(const uint32_t *steps, int pointers, int which, uint32_t i);

#endif
