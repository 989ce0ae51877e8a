/* SPDX-License-Identifier: Apache-2.0 */
/* Maps an instruction of a Python code object to its line, by the raw line table. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * python = major << 8 | minor; lasti = byte offset of the instruction (negative: the code has not
 * begun). Never reads past len; a table that ends too early gives its last line. 0 = no
 * line.
 */
unsigned gmt_pylines_line(unsigned python, unsigned first_line, const void *table, size_t len,
			  long lasti);
