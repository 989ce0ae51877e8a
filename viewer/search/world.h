/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A world of ranks that is larger than the machine. Some of its ranks run, and a process of ours,
 * the stand-in, answers the rendezvous in place of all others. Their messages are simulated by the
 * device (SIMGPU_RANKS=alone).
 */
#ifndef VIEWER_WORLD_H
#define VIEWER_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define WORLD_MOST (1 << 20)
#define WORLD_RUN  8 /* most ranks that run */

/* The ranks of a world that run, ascending. */
struct world {
	long size;
	long ranks[WORLD_RUN];
	size_t count; /* 0: all ranks run */
	long node;    /* ranks per node */
};

/* Parses "8", "512", "512:0,64,511"; NULL: none. Without a list, up to WORLD_HERE ranks all run
 * (w->count is 0). In a larger world the first, the middle and the last rank run. Returns 0, or an
 * exit code after one error message. */
#define WORLD_HERE 16
int world_parse(struct world *w, const char *text);

/* Number of ranks that run on this machine. */
static inline long world_runs(const struct world *w)
{
	return w->count ? (long)w->count : w->size;
}

struct stand_in {
	pid_t pid;
	int ports[WORLD_RUN]; /* rendezvous ports, one per running rank */
};

/* Starts it (python/gpumemtrace/_world.py) with that Python; false: there is no such process. Its
 * errors go to `log`. It ends with this process, or by stand_in_end. */
bool stand_in_start(struct stand_in *in, const struct world *w, const char *python, int log);
void stand_in_end(struct stand_in *in);

void world_set(const char *name, long n); /* sets an environment variable */
/* Environment of a process: its rank, and the address of the rendezvous. */
void world_set_rank(long rank, long size, long node, int port);
/* Sets the environment that torchrun would set for rank w->ranks[i], and the file through which the
 * simulated devices of the running ranks pass messages. */
void world_environment(const struct world *w, size_t i, int port, const char *messages);

#endif
