/* SPDX-License-Identifier: Apache-2.0
 *
 * Communicators, for the files of NCCL:
 *	lib_nccl.c		the ranks of a communicator
 *	lib_nccl_memory.c	the device memory of a communicator
 *	lib_nccl_id.c, _node.c	how the ranks' processes meet, and the memory they share
 *	lib_nccl_payload.c	the known bytes of a buffer, as they are sent
 *	lib_nccl_exchange.c	collectives and messages that wait for other ranks
 *	lib_nccl_numbers.c	sums and other reductions
 *	lib_nccl_collective.c	the functions
 *	lib_nccl_alone.c	the functions of a rank that runs alone
 *	lib_nccl_world.c	messages between such ranks
 *	lib_nccl_split.c	the number of ranks in a part of a communicator
 *	lib_nccl_group.c	groups of calls
 */
#pragma once

#include <pthread.h>
#include "../core/contents.h"
#include "../core/devices.h"
#include "../core/memory.h"
#include "../core/work.h"
#include "../core/pending.h"
#include "lib.h"
#include "lib_nccl_node.h"
#include "lib_nccl_world.h"

enum {
	NCCL_OK = 0,
	NCCL_CUDA_ERROR = 1,
	NCCL_SYSTEM_ERROR = 2,
	NCCL_INVALID = 4,
	NCCL_INVALID_USAGE = 5,
	NCCL_REMOTE_ERROR = 6,
};

#define NCCL_COMM      SIM_KIND('n', 'c', 'c', 'l')
#define NCCL_MAX_PEERS 1024
#define NCCL_OPS       64 /* custom operators that a communicator can hold */

struct nccl_buffer {
	void *ptr;
	size_t bytes;
	struct nccl_buffer *next;
};

struct nccl_op {
	bool used;
	unsigned char scalar[8];
	bool known;
};

struct nccl_comm {
	int ranks, rank, device;
	bool unsure;			     /* the number of ranks is a guess */
	bool ring, nvls;		     /* connected for collectives */
	unsigned char peers[NCCL_MAX_PEERS]; /* connected for send and receive */
	struct nccl_buffer *buffers;
	size_t bytes, least, most; /* of device memory: simulated, least, most */
	bool other_nodes;	   /* connected to peers there */
	pthread_mutex_t lock;
	struct nccl_node *node; /* NULL: alone */
	uint64_t collectives, hosts, sends[NCCL_HERE], receives[NCCL_HERE];
	uint64_t nth; /* its number among communicators of that many ranks */
	uint64_t broadcasts, splits;
	size_t objects;		      /* number whose assumed lengths were broadcast last */
	int error;		      /* asynchronous */
	struct nccl_op ops[NCCL_OPS]; /* operator 5 is the first */
};

extern char nccl_last_error[96]; /* the text that ncclGetLastError returns */

/* The communicator, or NULL if it is not one. */
struct nccl_comm *nccl_check(const void *handle);
int nccl_id_open(const struct nccl_id *id); /* a descriptor, or -1; lib_nccl_id.c */

/* ---- lib_nccl_memory.c ---- */
int nccl_open_memory(struct nccl_comm *c);
void nccl_give_back(struct nccl_comm *c);
/* Memory that NCCL allocates at the first collective, at the first all-reduce of many bytes, and at
 * the first message to a peer. */
int nccl_connect_ring(struct nccl_comm *c);
int nccl_connect_nvls(struct nccl_comm *c, double bytes);
int nccl_connect_peer(struct nccl_comm *c, int peer);

/* ---- lib_nccl_numbers.c ---- */
enum { NCCL_SUM, NCCL_PROD, NCCL_MAX, NCCL_MIN, NCCL_AVG, NCCL_OWN };
size_t nccl_type_bytes(int type); /* 0: not a type */
/* total = total op with, for each number. The result is as well known as the less known operand. */
void nccl_combine(void *total, unsigned char *states, const void *with,
		  const unsigned char *with_states, size_t n, int type, int op);
void nccl_scale(void *data, size_t n, int type, const void *scalar);
bool nccl_is_whole(int type);
void nccl_divide(void *data, size_t n, int type, int ranks);
void nccl_one_over(void *scalar, int type, int ranks);

/* ---- lib_nccl_payload.c ---- */
struct nccl_span { /* bytes with the same state */
	uint64_t at, bytes, offset;
	uint64_t state;
};
struct nccl_payload {
	struct nccl_span *spans;
	size_t n, room;
	unsigned char *data;
	size_t bytes, data_room;
};
void nccl_payload_of(struct nccl_payload *p, const void *from, size_t bytes);
void nccl_payload_scale(struct nccl_payload *p, int type, const void *scalar);
void nccl_payload_send(struct nccl_payload *p, struct nccl_node *n, int lane, uint64_t number,
		       struct nccl_message m); /* frees p */
/* Reads the spans of a message; then bytes [at, at + bytes) of the buffer and their states. */
bool nccl_payload_open(struct nccl_payload *p, struct nccl_node *n, const struct nccl_message *m);
void nccl_payload_read(const struct nccl_payload *p, struct nccl_node *n,
		       const struct nccl_message *m, size_t at, unsigned char *data,
		       unsigned char *states, size_t bytes);
void nccl_payload_free(struct nccl_payload *p);

/* ---- lib_nccl_exchange.c ---- */
enum nccl_kind {
	NCCL_REDUCE, /* to all, or to one */
	NCCL_SCATTER_REDUCED,
	NCCL_GATHER,
	NCCL_BROADCAST,
	NCCL_MESSAGE,
	NCCL_TALK, /* between hosts */
};
struct nccl_call {
	struct nccl_comm *comm;
	const void *from;
	void *to;
	size_t count;
	int type, op, root; /* root: -1 all */
	void *stream;
};
int nccl_exchange(enum nccl_kind kind, const struct nccl_call *call);
int nccl_send(struct nccl_comm *c, const void *from, size_t bytes, int peer);
int nccl_receive(struct nccl_comm *c, void *to, size_t bytes, int peer, void *stream);
void nccl_end_exchanges(struct nccl_comm *c);

/* ---- lib_nccl_alone.c ---- */
int nccl_alone(enum nccl_kind kind, const struct nccl_call *call);
int nccl_alone_send(struct nccl_comm *c, const void *from, size_t bytes, int peer);
int nccl_alone_receive(struct nccl_comm *c, void *to, size_t bytes, int peer);

/* ---- lib_nccl_split.c ---- */
/* Number of ranks in the part that this rank of c joins with that colour and key; 0 if unknown. */
int nccl_split_ranks(struct nccl_comm *c, int colour, int key);

/* ---- lib_nccl_group.c ---- */
int ncclGroupStart(void);
int ncclGroupEnd(void);
/* Records a transfer in the open group of a rank that runs alone; without a group it is done at
 * once. */
void nccl_group_send(struct nccl_comm *comm, const void *from, size_t bytes, int peer);
void nccl_group_receive(struct nccl_comm *comm, void *to, size_t bytes, struct nccl_topic topic);
/* Work that must wait for other ranks: done now, or at the end of the group. It frees itself. */
struct nccl_later {
	int (*finish)(struct nccl_later *later);
	struct nccl_later *next;
};
int nccl_later(struct nccl_later *later);
