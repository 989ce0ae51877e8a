/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbols of loaded objects, found by reading their tables in memory. dlsym and dlopen wait for the
 * loader's lock, which another thread may hold while it waits for a lock that the caller holds;
 * this takes only the short inner lock of dl_iterate_phdr. Any thread, any lock held.
 */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The function or object `name`, exported by any loaded object but this library; NULL = none. */
void *elfsym_find(const char *name);

/* Path of the loaded object whose file name is `base`, cut at `room`; false if it is not loaded. */
bool elfsym_path(const char *base, char *path, size_t room);

/* For one object, inside a callback of dl_iterate_phdr. elfsym_in: NULL = not exported. */
bool elfsym_holds(const struct dl_phdr_info *info, uintptr_t address);
void *elfsym_in(const struct dl_phdr_info *info, const char *name);

/* Calls fn for each function that it exports and whose size is known. */
void elfsym_functions(const struct dl_phdr_info *info,
		      void (*fn)(void *ctx, uint64_t start, uint64_t size, const char *name),
		      void *ctx);

/* Its DT_SONAME or its first DT_NEEDED (tag) that begins with `prefix`; NULL = none. */
const char *elfsym_entry(const struct dl_phdr_info *info, int64_t tag, const char *prefix);
