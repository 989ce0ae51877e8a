/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's memory snapshots (pickles of torch.cuda.memory._snapshot) as recordings: every command
 * takes one as its file. What a snapshot lacks is not made up; what had to be found by a rule is
 * said in the recording's facts ("note.1" and so on).
 */
#pragma once

#include "../base/usual.h"

/* The file begins like a pickle, or like a packed one (base/unpack.h). */
bool import_recognises(const char *path);

/* What an export of a recording writes as metadata ends so: a class, not a phase of the program. */
#define OWN_METADATA " (gpumemtrace)"

/* Writes the snapshot as a recording to fd. 0, or a sentence was said and EXIT_UNREADABLE. */
int import_file(const char *path, int fd);

/* The same for what is in memory; `error` gets what is wrong with it. */
bool import_bytes(const void *data, size_t len, int fd, char *error, size_t room);
