/* SPDX-License-Identifier: Apache-2.0
 *
 * Communicators, for the files of NCCL: who is in one (lib_nccl.c), what it carries
 * (lib_nccl_collective.c) and what belongs together (lib_nccl_group.c).
 */
#ifndef SIMGPU_LIB_NCCL_H
#define SIMGPU_LIB_NCCL_H

#include <pthread.h>
#include "lib.h"

enum { NCCL_OK = 0, NCCL_CUDA_ERROR = 1, NCCL_SYSTEM_ERROR = 2, NCCL_INVALID = 4 };

#define NCCL_COMM      SIM_KIND('n', 'c', 'c', 'l')
#define NCCL_MAX_PEERS 1024

struct nccl_buffer {
	void *ptr;
	size_t bytes;
	struct nccl_buffer *next;
};

struct nccl_comm {
	int ranks, rank, device;
	bool ring;			     /* connected for collectives */
	unsigned char peers[NCCL_MAX_PEERS]; /* connected for send and receive */
	struct nccl_buffer *buffers;
	size_t bytes;
	pthread_mutex_t lock;
};

/* The communicator, or NULL if it is not one. */
struct nccl_comm *nccl_check(const void *handle);
/* What a first collective, or a first message to a peer, makes NCCL allocate. */
int nccl_connect_ring(struct nccl_comm *c);
int nccl_connect_peer(struct nccl_comm *c, int peer);
/* Notes a small transfer of the group that is open, if one is; lib_nccl_group.c. */
void nccl_group_send(struct nccl_comm *comm, const void *from, size_t bytes);
void nccl_group_receive(struct nccl_comm *comm, void *to, size_t bytes);

#endif
