/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers of any type as long doubles, whose mantissa holds every 64-bit integer. A type's name is
 * the letter that C++ mangles it to ("bahstijlmfd"), or H for float16 and B for bfloat16.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int number_size(char type); /* in bytes */
bool number_is_real(char type);
long double number_load(char type, const void *p);
void number_store(char type, void *p, long double x);
long double number_cast(char type, long double x); /* as a C cast would */
