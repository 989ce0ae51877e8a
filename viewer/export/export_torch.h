/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files that write PyTorch's memory snapshots only. */
#pragma once

#include "../recording/pickle_write.h"
#include "export.h"

/* The snapshot that a recording was converted from; len 0 = it was not. */
struct torch_source {
	uint8_t *bytes;
	size_t len, room;
};

int export_torch_source(struct export *x, struct torch_source *s);
/* The same snapshot again, with the class of every block. 0, or a sentence was said. */
int export_torch_again(struct export *x, const struct torch_source *s);

/* A member "user_metadata" with the class, "" for -1. */
void export_torch_class(struct pickler *p, int class);

/*
 * A member "category". PyTorch's page colours allocations by category and names the colours. It
 * stumbles over a snapshot with categories but without "unknown", so an entry that is no allocation
 * has that one, and no allocation before the first such entry has any: *named says that it was
 * there.
 */
void export_torch_category(struct pickler *p, bool *named, const char *action, int class);
