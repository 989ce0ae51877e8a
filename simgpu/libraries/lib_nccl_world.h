/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages between ranks of one world that each run alone: lib_nccl_world.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nccl_comm;

/* Identity of a message, equal in all ranks that run the same program. */
struct nccl_topic {
	uint64_t key;	/* 0: no other rank can derive it */
	int from;	/* the sender; -1: any rank */
	uint64_t taken; /* key of the message that the sender itself receives; 0: not looked up */
	int type, root; /* of a broadcast; 0 else */
};

/* Topics of a communicator's next broadcast and of the next message of that size with a peer. */
struct nccl_topic nccl_topic_broadcast(struct nccl_comm *c, size_t bytes);
struct nccl_topic nccl_topic_message(struct nccl_comm *c, int peer, size_t bytes, bool send);

/* The last rank's result of the next split of a communicator. */
struct nccl_topic nccl_topic_split(struct nccl_comm *c);

bool nccl_world_is_open(void);
/* Sends bytes in memory of the device or of the host. */
void nccl_world_tell(struct nccl_topic topic, const void *from, size_t bytes);
void nccl_world_pass(struct nccl_topic topic); /* this rank does not send it */
void nccl_world_sent(void);		       /* counts a message to a peer, of any size */
/* Waits for a message; false: no rank sends it, and nothing is written. */
bool nccl_world_hear(struct nccl_topic topic, void *to, size_t bytes);
/* Fills a buffer that no running rank knows with values that a program can read. */
void nccl_world_assume(struct nccl_comm *c, void *to, size_t bytes, struct nccl_topic topic);
