/* SPDX-License-Identifier: Apache-2.0 */
/* For the two files that write PyTorch's memory snapshots. */
#pragma once

#include "../recording/pickle_write.h"
#include "export.h"

/* The snapshot from which a recording was converted; len 0 = none. */
struct torch_source {
	uint8_t *bytes;
	size_t len, room;
};

int export_torch_source(struct export *x, struct torch_source *s);
/* Writes that snapshot with the class of every block. 0, or an exit code after an error message. */
int export_torch_again(struct export *x, const struct torch_source *s);

/* Writes the member "user_metadata" with the class, "" for -1. */
void export_torch_class(struct pickler *p, int class);

/*
 * Writes the member "category". PyTorch's page colours allocations by category and names the
 * colours. It fails on a snapshot with categories but without "unknown". So an entry that is no
 * allocation gets "unknown", and allocations before the first such entry get none (*named: it was
 * written).
 */
void export_torch_category(struct pickler *p, bool *named, const char *action, int class);
