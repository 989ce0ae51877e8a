/* SPDX-License-Identifier: Apache-2.0
 *
 * How the ranks of a communicator meet and exchange messages, in memory that their processes share.
 * A rank sends a message to one of its lanes, which keep their order. Sending never waits for a
 * receiver, as long as there is room.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NCCL_HERE      16	       /* ranks of a node: no node has more devices */
#define NCCL_LANE_ALL  NCCL_HERE       /* collectives; lower lanes: to that rank */
#define NCCL_LANE_HOST (NCCL_HERE + 1) /* of communicators that are split or grow */
#define NCCL_LANES     (NCCL_HERE + 2)

struct nccl_id {
	char mark[16];
	uint64_t place; /* hash of the node's boot and the pid namespace */
	int32_t pid, fd;
	unsigned char random[96];
};

struct nccl_message {
	uint64_t stamp;		/* 1 + its number, once it can be read */
	uint64_t offset, bytes; /* of the payload in the file; 0 bytes: nothing is known */
	uint64_t count;
	int32_t kind, type, op;
	uint32_t readers; /* a bit for each rank that has yet to take it */
};

struct nccl_node;

/* An id is a file in memory that lives as long as a process holds it. */
int nccl_id_make(struct nccl_id *id);
bool nccl_id_is_here(const struct nccl_id *id);
void nccl_id_drop(const struct nccl_id *id); /* if this process made it */

/* Joins as `rank`; a result of NCCL. */
int nccl_node_join(struct nccl_node **out, const struct nccl_id *id, int ranks, int rank,
		   int device);
/* Waits until all have joined; if that fails, text is the reason. */
int nccl_node_meet(struct nccl_node *n, char *text, size_t size);
void nccl_node_leave(struct nccl_node *n);
struct nccl_node *nccl_node_keep(struct nccl_node *n);
void nccl_node_let_go(struct nccl_node *n);

/* Sends a message with its payload in two parts (the first may be NULL). A payload for which there
 * is no room is sent as unknown. */
void nccl_node_send(struct nccl_node *n, int lane, uint64_t number, struct nccl_message m,
		    const void *head, size_t head_bytes, const void *data, size_t bytes);
/* The message, if it is there. */
struct nccl_message *nccl_node_look(struct nccl_node *n, int from, int lane, uint64_t number);
bool nccl_node_read(struct nccl_node *n, const struct nccl_message *m, size_t at, void *to,
		    size_t bytes);
void nccl_node_take(struct nccl_node *n, struct nccl_message *m);

/* Sleeps until another rank has changed the bell, at most 50 ms. */
uint32_t nccl_node_bell(struct nccl_node *n);
void nccl_node_sleep(struct nccl_node *n, uint32_t bell);
/* The first rank of `waited` (bits) that has left or whose process has ended, or -1. */
int nccl_node_gone(struct nccl_node *n, uint32_t waited);
int nccl_node_pid(struct nccl_node *n, int rank);
/* Whether none of `waited` has used a processor since this was last asked. */
bool nccl_node_idle(struct nccl_node *n, uint32_t waited);
