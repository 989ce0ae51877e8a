/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of one ELF file by address, and its line numbers where it has debug information. */
#pragma once

#include "../base/usual.h"

struct elf_names;

/* NULL: no such file, no ELF file, or one with another build-id. Addresses are the ELF file's own.
 */
struct elf_names *elf_names_open(const char *path, const void *build_id, size_t len);
void elf_names_close(struct elf_names *n);

const char *elf_names_function(struct elf_names *n, uint64_t address); /* NULL = unknown */
const char *elf_names_line(struct elf_names *n, uint64_t address,
			   unsigned *line); /* file or NULL */
