/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole file in memory, copied as it is or unpacked (zstd, gzip, xz, the first file of a zip
 * archive, the snapshot in a page of memory_viz), up to a size limit. It is never mapped: another
 * program that cuts the file while it is read would end this one by SIGBUS.
 */
#pragma once

#include "usual.h"

struct unpacked {
	const void *data;
	size_t len;
};

/* Returns 0, or EXIT_UNREADABLE after an error message. */
int unpack_file(const char *path, struct unpacked *u);
void unpack_free(struct unpacked *u);

/* Recognizes packed files by their first bytes, of which only UNPACK_START matter. */
#define UNPACK_START 4096
bool unpack_recognises(const void *start, size_t len);
