/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that grow at their end. */
#ifndef VIEWER_BYTES_H
#define VIEWER_BYTES_H

#include <stddef.h>
#include <stdint.h>

struct bytes {
	uint8_t *p;
	size_t len, room;
};

void bytes_add(struct bytes *b, const void *bytes, size_t len);
/* As UTF-8, whatever it is: each other byte becomes '?'. Returns how many bytes were added. */
size_t bytes_add_text(struct bytes *b, const char *s, size_t len);
void bytes_free(struct bytes *b);

#endif
