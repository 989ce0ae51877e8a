/* SPDX-License-Identifier: Apache-2.0 */
/* A whole file in memory, as it is or unpacked (zstd, gzip), within limits. */
#ifndef VIEWER_UNPACK_H
#define VIEWER_UNPACK_H

#include <stdbool.h>
#include <stddef.h>

struct unpacked {
	const void *data;
	size_t len;
	bool mapped; /* the file itself */
};

/* 0, or a sentence was said and EXIT_UNREADABLE. */
int unpack_file(const char *path, struct unpacked *u);
void unpack_free(struct unpacked *u);

/* What a packed file begins with. */
bool unpack_is_zstd(const void *start, size_t len);
bool unpack_is_gzip(const void *start, size_t len);

#endif
