/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL: the file in memory that the ranks of a communicator share: its members, the lanes with
 * their messages, and then a stretch for each rank's payloads, which are accessed by read and write
 * calls, so that only the used part takes memory. A rank may end at any moment, because others see
 * a message only once its stamp is written.
 *
 * Any thread; a rank sends under its node's lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include "../core/processes.h"
#include "lib_nccl.h"

#define LANE	     512 /* messages in a lane */
#define STRETCH	     ((uint64_t)1 << 30)
#define KEPT	     (16 * MIB) /* bytes of a stretch that are kept once it is empty */
#define ROOM_WAIT_MS 60000
#define SLEEP_NS     50000000
#define SAY_MS	     30000
#define LOOK_MS	     900  /* interval between two looks at a rank */
#define LOOK_OLD_MS  5000 /* age at which the last look is worthless */
#define TICK_MS	     10	  /* of processor time */

enum member_state { ABSENT, JOINING, HERE, LEFT };

struct member {
	int32_t state, pid, device;
	uint32_t pad;
	uint64_t started; /* start time of its process */
};

struct head {
	struct nccl_id id;
	uint32_t bell, sleepers;
	int32_t ranks, closed; /* closed: whether the id's descriptor is */
	struct member members[NCCL_HERE];
	struct nccl_message lanes[NCCL_HERE][NCCL_LANES][LANE];
};

struct sent {
	struct nccl_message *message;
	uint64_t end; /* end of its payload */
};

struct nccl_node {
	struct head *head;
	int fd, ranks, rank, refs;
	pthread_mutex_t lock;
	struct sent *sent; /* not yet taken by all, a ring */
	size_t sent_first, sent_n, sent_room;
	uint64_t start, end; /* part of the stretch in use */
	struct {
		uint64_t used, asked_ms; /* processor time at the last look; its time */
		bool idle;
	} seen[NCCL_HERE];
};

/* ---- processes ---- */

static bool is_here(const struct member *m, uint64_t *used)
{
	uint64_t started;

	return process_lives(m->pid, used, &started) && started == m->started;
}

int nccl_node_gone(struct nccl_node *n, uint32_t waited)
{
	uint64_t used;

	for (int r = 0; r < n->ranks; r++) {
		const struct member *m = &n->head->members[r];
		int state = __atomic_load_n(&m->state, __ATOMIC_ACQUIRE);

		if (waited & 1u << r && (state == LEFT || (state == HERE && !is_here(m, &used))))
			return r;
	}
	return -1;
}

int nccl_node_pid(struct nccl_node *n, int rank)
{
	return n->head->members[rank].pid;
}

/* Several threads may call this. A second passes between two looks at a rank. */
bool nccl_node_idle(struct nccl_node *n, uint32_t waited)
{
	uint64_t now = pending_now_ms();
	bool idle = true;

	for (int r = 0; r < n->ranks; r++) {
		uint64_t used = 0, ms = now - n->seen[r].asked_ms;

		if (!(waited & 1u << r) || !is_here(&n->head->members[r], &used))
			continue;
		if (ms >= LOOK_MS) {
			n->seen[r].idle =
				ms < LOOK_OLD_MS && (used - n->seen[r].used) * TICK_MS * 20 <= ms;
			n->seen[r].used = used;
			n->seen[r].asked_ms = now;
		}
		idle = idle && n->seen[r].idle;
	}
	return idle;
}

/* ---- the bell ---- */

static void ring(struct nccl_node *n)
{
	__atomic_add_fetch(&n->head->bell, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&n->head->sleepers, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, &n->head->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

uint32_t nccl_node_bell(struct nccl_node *n)
{
	return __atomic_load_n(&n->head->bell, __ATOMIC_SEQ_CST);
}

void nccl_node_sleep(struct nccl_node *n, uint32_t bell)
{
	struct timespec t = { 0, SLEEP_NS };

	__atomic_add_fetch(&n->head->sleepers, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &n->head->bell, FUTEX_WAIT, bell, &t, NULL, 0);
	__atomic_sub_fetch(&n->head->sleepers, 1, __ATOMIC_SEQ_CST);
}

/* ---- joining and leaving ---- */

static int enter(struct nccl_node *n, int device)
{
	struct member *m = &n->head->members[n->rank];
	int32_t none = 0, absent = ABSENT;
	uint64_t used;

	if (!__atomic_compare_exchange_n(&n->head->ranks, &none, n->ranks, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_SEQ_CST) &&
	    none != n->ranks)
		return NCCL_INVALID;
	if (!__atomic_compare_exchange_n(&m->state, &absent, JOINING, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_SEQ_CST))
		return NCCL_INVALID_USAGE; /* the rank is taken */
	m->pid = getpid();
	m->device = device;
	if (!process_lives(m->pid, &used, &m->started))
		return NCCL_SYSTEM_ERROR;
	__atomic_store_n(&m->state, HERE, __ATOMIC_RELEASE);
	ring(n);
	return NCCL_OK;
}

int nccl_node_join(struct nccl_node **out, const struct nccl_id *id, int ranks, int rank,
		   int device)
{
	struct nccl_node *n = calloc(1, sizeof(*n));
	uint64_t file = sizeof(struct head) + NCCL_HERE * STRETCH;
	int result = NCCL_SYSTEM_ERROR;

	if (!n)
		return NCCL_SYSTEM_ERROR;
	n->fd = nccl_id_open(id);
	n->head = n->fd < 0 || ftruncate(n->fd, file)
			  ? MAP_FAILED
			  : mmap(NULL, sizeof(*n->head), PROT_READ | PROT_WRITE, MAP_SHARED, n->fd,
				 0);
	if (n->head != MAP_FAILED) {
		n->ranks = ranks;
		n->rank = rank;
		n->refs = 1;
		pthread_mutex_init(&n->lock, NULL);
		result = enter(n, device);
		if (!result) {
			*out = n;
			return NCCL_OK;
		}
		munmap(n->head, sizeof(*n->head));
	}
	if (n->fd >= 0)
		close(n->fd);
	free(n);
	return result;
}

static int arrived(const struct nccl_node *n)
{
	int count = 0;

	for (int r = 0; r < n->ranks; r++)
		count += __atomic_load_n(&n->head->members[r].state, __ATOMIC_ACQUIRE) >= HERE;
	return count;
}

/* Whether a process has ended. A rank that has left is not lost, because it had met the others. */
static bool lost(struct nccl_node *n)
{
	uint64_t used;

	for (int r = 0; r < n->ranks; r++)
		if (n->head->members[r].state == HERE && !is_here(&n->head->members[r], &used))
			return true;
	return false;
}

/* The error message in NCCL's words. */
static bool same_device(const struct nccl_node *n, char *text, size_t size)
{
	const struct member *all = n->head->members;

	for (int r = 0; r < n->ranks; r++) {
		if (r == n->rank || all[r].device != all[n->rank].device)
			continue;
		snprintf(text, size,
			 "Duplicate GPU detected : rank %d and rank %d both on CUDA device %d",
			 n->rank, r, all[r].device);
		return true;
	}
	return false;
}

/* Waits without limit, as on a real card, but reports which ranks are missing. */
int nccl_node_meet(struct nccl_node *n, char *text, size_t size)
{
	uint64_t since = pending_now_ms(), asked = since;
	bool said = false;
	int32_t no = 0;

	for (uint32_t bell = nccl_node_bell(n); arrived(n) < n->ranks; bell = nccl_node_bell(n)) {
		nccl_node_sleep(n, bell);
		if (pending_now_ms() - asked < 200)
			continue;
		asked = pending_now_ms();
		if (lost(n) && arrived(n) < n->ranks) {
			snprintf(text, size, "a rank has ended before all had come");
			return NCCL_REMOTE_ERROR;
		}
		if (!said && asked - since > SAY_MS) {
			said = true;
			dprintf(2,
				"simgpu: rank %d has waited %d s for the others, as NCCL does (%d "
				"of %d have come); SIMGPU_RANKS=alone lets a rank run by itself\n",
				n->rank, SAY_MS / 1000, arrived(n), n->ranks);
		}
	}
	if (n->head->id.pid == getpid() &&
	    __atomic_compare_exchange_n(&n->head->closed, &no, 1, false, __ATOMIC_SEQ_CST,
					__ATOMIC_SEQ_CST))
		nccl_id_drop(&n->head->id);
	return same_device(n, text, size) ? NCCL_INVALID_USAGE : NCCL_OK;
}

void nccl_node_leave(struct nccl_node *n)
{
	__atomic_store_n(&n->head->members[n->rank].state, LEFT, __ATOMIC_RELEASE);
	ring(n);
	nccl_node_let_go(n);
}

struct nccl_node *nccl_node_keep(struct nccl_node *n)
{
	__atomic_add_fetch(&n->refs, 1, __ATOMIC_RELAXED);
	return n;
}

void nccl_node_let_go(struct nccl_node *n)
{
	if (__atomic_sub_fetch(&n->refs, 1, __ATOMIC_ACQ_REL))
		return;
	munmap(n->head, sizeof(*n->head));
	close(n->fd);
	pthread_mutex_destroy(&n->lock);
	free(n->sent);
	free(n);
}

/* ---- sending ---- */

static bool taken(struct nccl_node *n, struct nccl_message *m)
{
	uint32_t readers = __atomic_load_n(&m->readers, __ATOMIC_ACQUIRE);

	for (int r = 0; r < n->ranks; r++)
		if (readers & 1u << r &&
		    __atomic_load_n(&n->head->members[r].state, __ATOMIC_ACQUIRE) == LEFT)
			readers &= ~(1u << r);
	return !readers;
}

/* Frees the room of payloads that all ranks have taken, in the order in which they were sent. */
static void tidy(struct nccl_node *n)
{
	while (n->sent_n && taken(n, n->sent[n->sent_first].message)) {
		n->start = n->sent[n->sent_first].end;
		n->sent_first = (n->sent_first + 1) % n->sent_room;
		n->sent_n--;
	}
	if (n->sent_n || !n->end)
		return;
	if (n->end > KEPT)
		fallocate(n->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			  sizeof(struct head) + n->rank * STRETCH + KEPT, STRETCH - KEPT);
	n->start = n->end = 0;
}

static bool remember(struct nccl_node *n, struct nccl_message *m, uint64_t end)
{
	if (n->sent_n == n->sent_room) {
		size_t room = n->sent_room ? 2 * n->sent_room : 64;
		struct sent *sent = calloc(room, sizeof(*sent));

		if (!sent)
			return false;
		for (size_t i = 0; i < n->sent_n; i++)
			sent[i] = n->sent[(n->sent_first + i) % n->sent_room];
		free(n->sent);
		n->sent = sent;
		n->sent_room = room;
		n->sent_first = 0;
	}
	n->sent[(n->sent_first + n->sent_n++) % n->sent_room] = (struct sent){ m, end };
	return true;
}

/* Waits without limit for a full lane, like a stream whose queue is full, unless a reader has
 * ended. The stretch is used from start to end, and again once everything has been taken. That wait
 * is limited; false means that there is no room. */
static bool wait_for_room(struct nccl_node *n, struct nccl_message *m, uint64_t bytes)
{
	uint64_t since = pending_now_ms();

	for (;;) {
		uint32_t bell = nccl_node_bell(n);
		bool room;

		tidy(n);
		room = n->end + bytes <= STRETCH;
		if (taken(n, m) && (room || pending_now_ms() - since > ROOM_WAIT_MS))
			return room;
		pthread_mutex_unlock(&n->lock);
		pending_poll(); /* others may wait until this rank takes their messages */
		nccl_node_sleep(n, bell);
		pthread_mutex_lock(&n->lock);
		if (pending_now_ms() - since > 1000 && nccl_node_gone(n, m->readers) >= 0)
			return room;
	}
}

static bool stretch_write(struct nccl_node *n, uint64_t at, const void *data, size_t bytes)
{
	uint64_t base = sizeof(struct head) + n->rank * STRETCH;

	while (bytes) {
		ssize_t done = pwrite(n->fd, data, bytes, base + at);

		if (done <= 0 && errno != EINTR)
			return false;
		if (done <= 0)
			continue;
		data = (const char *)data + done;
		at += done;
		bytes -= done;
	}
	return true;
}

void nccl_node_send(struct nccl_node *n, int lane, uint64_t number, struct nccl_message m,
		    const void *head, size_t head_bytes, const void *data, size_t bytes)
{
	struct nccl_message *to = &n->head->lanes[n->rank][lane][number % LANE];
	uint64_t all = bytes ? head_bytes + bytes : 0;
	bool whole;

	pthread_mutex_lock(&n->lock);
	whole = wait_for_room(n, to, all) && stretch_write(n, n->end, head, all ? head_bytes : 0) &&
		stretch_write(n, n->end + head_bytes, data, bytes);
	m.bytes = whole ? all : 0;
	m.offset = sizeof(struct head) + n->rank * STRETCH + n->end;
	m.stamp = 0;
	__atomic_store_n(&to->stamp, 0, __ATOMIC_SEQ_CST);
	*to = m;
	if (m.bytes) {
		n->end += all;
		remember(n, to, n->end);
	}
	__atomic_store_n(&to->stamp, number + 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&n->lock);
	ring(n);
}

/* ---- receiving ---- */

struct nccl_message *nccl_node_look(struct nccl_node *n, int from, int lane, uint64_t number)
{
	struct nccl_message *m = &n->head->lanes[from][lane][number % LANE];

	return __atomic_load_n(&m->stamp, __ATOMIC_ACQUIRE) == number + 1 ? m : NULL;
}

bool nccl_node_read(struct nccl_node *n, const struct nccl_message *m, size_t at, void *to,
		    size_t bytes)
{
	uint64_t from = m->offset + at;

	if (at > m->bytes || bytes > m->bytes - at)
		return false;
	while (bytes) {
		ssize_t done = pread(n->fd, to, bytes, from);

		if (done <= 0 && errno != EINTR)
			return false;
		if (done <= 0)
			continue;
		to = (char *)to + done;
		from += done;
		bytes -= done;
	}
	return true;
}

void nccl_node_take(struct nccl_node *n, struct nccl_message *m)
{
	__atomic_and_fetch(&m->readers, ~(1u << n->rank), __ATOMIC_ACQ_REL);
	ring(n);
}
