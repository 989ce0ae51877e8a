/* SPDX-License-Identifier: Apache-2.0 */
/* A whole recording made of what can be read of another, its live file included. */
#ifndef VIEWER_COPYING_H
#define VIEWER_COPYING_H

#include "../recording/recording.h"

/* 0, or a sentence was said and the exit code: then there is no file. */
int copying_write(const struct recording *r, const char *path, uint64_t *events);

#endif
