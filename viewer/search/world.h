/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A world of ranks that is larger than the machine: some of its ranks run, and a process of ours,
 * the stand-in, answers the rendezvous in the place of all others. What they would have sent is the
 * simulated device's part (SIMGPU_RANKS=alone).
 */
#ifndef VIEWER_WORLD_H
#define VIEWER_WORLD_H

#include <sys/types.h>

#include "store.h"

#define WORLD_MOST (1 << 20)

/* "8", "512", "512:0,64,511"; NULL: none. Without a list up to HERE ranks all run (w->count is 0);
 * of more the first, the last and the one in the middle do. 0, or a sentence was said and the exit
 * code. */
#define WORLD_HERE 16
int world_parse(struct world *w, const char *text);

/* How many of its ranks run on this machine. */
static inline long world_runs(const struct world *w)
{
	return w->count ? (long)w->count : w->size;
}

struct stand_in {
	pid_t pid;
	int ports[WORLD_RUN]; /* of the rendezvous, one for each rank that runs */
};

/* Starts it; 0 or an errno. It ends with this process, or by stand_in_end. */
int stand_in_start(struct stand_in *in, const struct world *w);
void stand_in_end(struct stand_in *in);

void world_set(const char *name, long n); /* a variable of the environment */
/* What tells a process its rank, and where the rendezvous is. */
void world_set_rank(long rank, long size, long node, int port);
/* What torchrun sets, for the process of rank w->ranks[i]; and the file in which the simulated
 * devices of those that run leave each other what they send. */
void world_environment(const struct world *w, size_t i, int port, const char *messages);

#endif
