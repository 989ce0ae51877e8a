/* SPDX-License-Identifier: Apache-2.0 */
/* What a recording says of the process that wrote it: its rank, its run, its parent. Nothing but
 * the recorded facts is read, and nothing is said of a file that cannot be. */
#ifndef VIEWER_RANKS_LOOK_H
#define VIEWER_RANKS_LOOK_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What every process of a run has alike: variables that its launcher sets. */
enum {
	JOB_WORLD_SIZE,
	JOB_MASTER_ADDR,
	JOB_MASTER_PORT,
	JOB_SLURM_JOB_ID,
	JOB_TORCHELASTIC_RUN_ID,
	JOB_PMIX_NAMESPACE,
	JOB_FACTS
};

struct rank_file {
	char *path;
	size_t operand;	   /* which of the paths that were given it is of */
	const char *of;	   /* that path as short as it can be, where several runs stand together */
	bool of_is_folder; /* else it names the file itself */
	bool readable;
	bool a_part;	/* no end, or damage: the program was killed, runs, or the file is cut */
	long rank;	/* -1: not known */
	long world;	/* ranks of its run; 0: not known */
	bool by_script; /* the rank is that of RANK, which a program or its launcher sets for it */
	char name[32];	/* "rank 2", "process 4711", or "" */
	char host[64];
	uint32_t pid, parent;
	int64_t start_ns;	/* of the process, by the clock on the wall */
	char *facts[JOB_FACTS]; /* "": not set, or not known */
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
bool ranks_is_local(const char *address); /* of MASTER_ADDR: the host itself */
const char *ranks_job_key(size_t fact);	  /* "WORLD_SIZE" */
void ranks_name(struct rank_file *f);

#endif
