/* SPDX-License-Identifier: Apache-2.0 */
/* What a recording says of the process that wrote it: its rank, its run, its parent. Nothing but
 * the recorded facts is read, and nothing is said of a file that cannot be. */
#ifndef VIEWER_RANKS_LOOK_H
#define VIEWER_RANKS_LOOK_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rank_file {
	char *path;
	bool readable;
	bool a_part;	/* no end, or damage: the program was killed, runs, or the file is cut */
	long rank;	/* -1: not known */
	long world;	/* ranks of its run; 0: not known */
	bool by_script; /* the rank is that of RANK, which a program or its launcher sets for it */
	char name[32];	/* "rank 2", "process 4711", or "" */
	char host[64];
	uint32_t pid, parent;
	int64_t start_ns;  /* of the process, by the clock on the wall */
	char *job;	   /* what all processes of a run have in common; "" = nothing is known */
	bool job_is_local; /* it says nothing of other hosts */
	char *world_job;   /* of a simulated rank that runs by itself: its job without its port */
	bool by_itself;	   /* that became its job: something answers for the other ranks */
	char *command;
	char *folder; /* of the program: of its repository, else where it ran; "" = not known */
};

/* path stays the file's. */
void ranks_look(struct rank_file *f, char *path);
void ranks_look_free(struct rank_file *f);
void ranks_name(struct rank_file *f);

#endif
