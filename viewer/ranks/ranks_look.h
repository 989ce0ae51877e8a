/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about the process that wrote a recording: its rank, its run, its parent. Only recorded
 * facts are read, and a file that cannot be read causes no message. */
#pragma once

#include "../base/usual.h"

/* Variables that a launcher sets to the same value in every process of a run. */
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
	size_t operand;	   /* index of the given path that it belongs to */
	const char *of;	   /* the given path, shortened, if there are several runs */
	bool of_is_folder; /* else it names the file itself */
	bool readable;
	bool a_part;	/* no end, or damaged: killed, cut, or still running */
	long rank;	/* -1: not known */
	long world;	/* ranks of its run; 0: not known */
	bool by_script; /* the rank comes from RANK, set by a program or its launcher */
	char name[32];	/* "rank 2", "process 4711", or the beginning of the file's name */
	char host[64];
	uint32_t pid, parent;
	int64_t start_ns;	/* wall-clock start of the process; 0: not known */
	char *facts[JOB_FACTS]; /* "": not set, or not known */
	char *job;		/* the facts that all processes of a run share; "" = unknown */
	bool job_is_local;	/* it does not identify the run on other hosts */
	char *world_job;	/* for a rank simulated alone: its job without the port */
	bool by_itself; /* `world_job` became its job, because the other ranks are simulated */
	char *command;
	char *folder; /* the program's repository, else its working directory; "" = unknown */
};

/* Reads the facts of a file. Takes ownership of path, also if the file cannot be read. */
void ranks_look(struct rank_file *f, char *path);
void ranks_look_free(struct rank_file *f);
bool ranks_is_local(const char *address); /* whether MASTER_ADDR means the host itself */
void ranks_name(struct rank_file *f);

/* Whether two recordings are of different runs. */

/* Most nanoseconds between the starts of two ranks of a run. */
#define RANKS_LONGEST_START (600 * UINT64_C(1000000000))
/* Whether they started too far apart for one run. Ranks that were simulated alone never do. */
bool ranks_began_apart(const struct rank_file *a, const struct rank_file *b);

/* "WORLD_SIZE is 2 in a.gmt and 4 in b.gmt"; false: they may be of one run. */
bool ranks_differ(const struct rank_file *a, const struct rank_file *b, char *why, size_t room);
