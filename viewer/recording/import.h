/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts PyTorch's memory snapshots (pickles of torch.cuda.memory._snapshot) and traces of
 * torch.profiler to recordings, so that every command can read one. Nothing that the file lacks is
 * made up. The recording's facts ("note.1" and so on) list what was found by a rule.
 */
#pragma once

#include "../base/usual.h"

/* Whether the file begins like a pickle, a trace, or a packed file (base/unpack.h). */
bool import_recognises(const char *path);

/* End of the metadata that `export` writes: it names a class, not a phase of the program. */
#define OWN_METADATA " (gpumemtrace)"

/* Writes the snapshot as a recording to fd. 0, or EXIT_UNREADABLE after an error message. */
int import_file(const char *path, int fd);

/* The same for a snapshot in memory. False: `error` gets the reason. */
bool import_bytes(const void *data, size_t len, int fd, char *error, size_t room);
