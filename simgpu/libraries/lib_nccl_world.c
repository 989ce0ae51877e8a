/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL in a world of which only some ranks run, each as if alone. SIMGPU_WORLD names those ranks
 * and a file ("0,256,511:PATH"). A rank's messages to ranks that do not run go to that file, and
 * other ranks may read them there. All ranks run the same program. So the root of their own group
 * sent, at the same place, what the root of this group would have sent, and the nearest running
 * stage sent what the stage before this one would have sent. Lengths and shapes that decide sizes
 * arrive this way. Only messages of at most MOST bytes are waited for, and only their known bytes
 * travel. A running rank may be of the same stage as this one, so that it receives where it would
 * have to send. Then this rank receives the same message.
 *
 * Any thread. The file: the processes, then one message behind the other.
 */
#include "lib_nccl_world.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/mman.h>
#include "lib_nccl.h"

#define ROOM	  ((size_t)256 << 20) /* size of the file, which is sparse */
#define MOST	  ((size_t)64 << 10)
#define RANKS	  8
#define PAUSE_MS  2
#define SILENT_MS 20000 /* without any message for this long, none will come */
#define TWIN_MS	  5000	/* after this long, a rank that has received does not send it on */

enum { PASSED = 1, SENT, SENT_UNKNOWN };

struct sent {
	uint32_t kind; /* 0: not written yet */
	int32_t rank;
	uint64_t key, bytes, room;
	unsigned char data[]; /* the bytes, then what is known of each */
};

struct world {
	uint64_t used;	  /* bytes behind this */
	int32_t pids[64]; /* process ids of the ranks, in their order */
	unsigned char sent[];
};

static struct world *world;
static int ranks[RANKS], rank_count, own;

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- the file ---- */

static void open_world(void)
{
	const char *text = getenv("SIMGPU_WORLD"), *rank = getenv("RANK");
	char *end;
	int fd;

	if (!text || !rank)
		return;
	while (rank_count < RANKS) {
		ranks[rank_count] = (int)strtol(text, &end, 10);
		if (ranks[rank_count] == atoi(rank))
			own = rank_count;
		rank_count++;
		text = end + 1;
		if (*end != ',')
			break;
	}
	fd = *end == ':' ? open(text, O_RDWR | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	if (!ftruncate(fd, ROOM)) {
		void *p = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		world = p == MAP_FAILED ? NULL : p;
	}
	close(fd);
	if (world)
		__atomic_store_n(&world->pids[own], getpid(), __ATOMIC_RELEASE);
}

bool nccl_world_is_open(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, open_world);
	return world && rank_count > 1;
}

static bool is_unknown(const void *from, size_t bytes)
{
	return sim_is_device_ptr(from) &&
	       contents_least((uintptr_t)from, bytes) == CONTENTS_UNKNOWN;
}

static void tell(uint32_t kind, uint64_t key, const void *from, size_t bytes)
{
	size_t room = (sizeof(struct sent) + (kind == SENT ? 2 * bytes : 0) + 63) & ~(size_t)63;
	uint64_t at = __atomic_fetch_add(&world->used, room, __ATOMIC_RELAXED);
	struct sent *t = (struct sent *)(world->sent + at);

	if (at + room > ROOM - sizeof(*world))
		return;
	t->rank = ranks[own];
	t->key = key;
	t->bytes = bytes;
	t->room = room;
	if (kind == SENT && sim_is_device_ptr(from)) {
		contents_read(from, t->data, t->data + bytes, bytes);
	} else if (kind == SENT) {
		memcpy(t->data, from, bytes);
		memset(t->data + bytes, CONTENTS_KNOWN, bytes);
	}
	__atomic_store_n(&t->kind, kind, __ATOMIC_RELEASE);
}

void nccl_world_tell(struct nccl_topic topic, const void *from, size_t bytes)
{
	if (topic.key && bytes <= MOST && nccl_world_is_open())
		tell(is_unknown(from, bytes) ? SENT_UNKNOWN : SENT, topic.key, from, bytes);
}

void nccl_world_pass(struct nccl_topic topic)
{
	if (nccl_world_is_open())
		tell(PASSED, topic.key, NULL, 0);
}

/* ---- topics ---- */

static uint64_t mix(uint64_t h, uint64_t with)
{
	h = (h ^ with) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

struct nccl_topic nccl_topic_broadcast(struct nccl_comm *c, size_t bytes)
{
	uint64_t h = mix(mix(mix(1, c->ranks), c->nth), bytes);

	return (struct nccl_topic){ mix(h, __atomic_fetch_add(&c->broadcasts, 1, __ATOMIC_RELAXED)),
				    -1, 0 };
}

/* Counts messages per size and direction, sent and received; returns the number so far. */
static uint64_t next_of(bool forward, size_t bytes, bool send)
{
	static struct {
		size_t bytes;
		uint64_t count[2];
	} counts[2][128];
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	uint64_t n = UINT64_MAX;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < 128 && n == UINT64_MAX; i++) {
		if (counts[forward][i].bytes && counts[forward][i].bytes != bytes)
			continue;
		counts[forward][i].bytes = bytes;
		n = counts[forward][i].count[send]++;
	}
	pthread_mutex_unlock(&lock);
	return n;
}

/* Forward means to the next ranks of a ring; such a message comes from the rank that runs before
 * this one. */
struct nccl_topic nccl_topic_message(struct nccl_comm *c, int peer, size_t bytes, bool send)
{
	int from = send ? c->rank : peer, to = send ? peer : c->rank;
	int ahead = (to - from + c->ranks) % c->ranks;
	bool forward = c->ranks == 2 ? to > from : ahead <= c->ranks / 2;
	struct nccl_topic t = { 0, -1, 0 };

	if (!nccl_world_is_open() || bytes > MOST || from == to)
		return t;
	t.key = mix(mix(mix(2, forward), bytes), next_of(forward, bytes, send));
	t.taken = mix(t.key, 5);
	if (!send)
		t.from = ranks[(own + (forward ? rank_count - 1 : 1)) % rank_count];
	return t;
}

struct nccl_topic nccl_topic_split(struct nccl_comm *c)
{
	uint64_t n = __atomic_fetch_add(&c->splits, 1, __ATOMIC_RELAXED);

	return (struct nccl_topic){ mix(mix(mix(3, c->ranks), c->nth), n), c->ranks - 1, 0 };
}

/* ---- receiving ---- */

static bool runs(int i)
{
	int pid = __atomic_load_n(&world->pids[i], __ATOMIC_ACQUIRE);

	return !pid || !kill(pid, 0) || errno != ESRCH;
}

/* Finds a message of that topic. *passed: bits of the ranks that said they do not send it. */
static const struct sent *message_find(struct nccl_topic topic, unsigned *passed)
{
	uint64_t used = __atomic_load_n(&world->used, __ATOMIC_ACQUIRE);
	const struct sent *t;

	*passed = 0;
	for (uint64_t at = 0; at + sizeof(*t) <= used && used <= ROOM - sizeof(*world);
	     at += t->room) {
		uint32_t kind;

		t = (const struct sent *)(world->sent + at);
		kind = __atomic_load_n(&t->kind, __ATOMIC_ACQUIRE);
		if (!kind)
			break;
		if (t->key != topic.key)
			continue;
		for (int i = 0; kind == PASSED && i < rank_count; i++)
			*passed |= ranks[i] == t->rank ? 1u << i : 0;
		if (kind != PASSED && (topic.from < 0 || topic.from == t->rank))
			return t;
	}
	return NULL;
}

static bool somebody_may(struct nccl_topic topic, unsigned passed)
{
	for (int i = 0; i < rank_count; i++)
		if (i != own && !(passed & 1u << i) && runs(i) &&
		    (topic.from < 0 || topic.from == ranks[i]))
			return true;
	return false;
}

/* Finds the message that the sender itself received, once it is clear that it does not send. That
 * rank is then of the same stage as this one. */
static const struct sent *look_taken(struct nccl_topic topic, uint64_t *since)
{
	static unsigned twins; /* bits of ranks for which that was clear before */
	const struct sent *t;
	unsigned passed, bit = 0;

	if (!topic.taken)
		return NULL;
	t = message_find((struct nccl_topic){ topic.taken, topic.from, 0 }, &passed);
	for (int i = 0; i < rank_count; i++)
		bit |= ranks[i] == topic.from ? 1u << i : 0;
	if (t && !*since)
		*since = now_ms();
	if (!t ||
	    (!(__atomic_load_n(&twins, __ATOMIC_RELAXED) & bit) && now_ms() - *since < TWIN_MS))
		return NULL;
	__atomic_fetch_or(&twins, bit, __ATOMIC_RELAXED);
	return t;
}

bool nccl_world_hear(struct nccl_topic topic, void *to, size_t bytes)
{
	uint64_t since = now_ms(), used = 0, taken = 0;
	const struct sent *t;
	unsigned passed;

	if (!topic.key || bytes > MOST || !nccl_world_is_open() || topic.from == ranks[own])
		return false;
	for (;;) {
		bool may;

		t = message_find(topic, &passed);
		t = t ? t : look_taken(topic, &taken);
		may = !t && somebody_may(topic, passed);
		if (t || !may)
			break;
		if (used != __atomic_load_n(&world->used, __ATOMIC_RELAXED)) {
			used = __atomic_load_n(&world->used, __ATOMIC_RELAXED);
			since = now_ms();
		}
		if (now_ms() - since > SILENT_MS)
			break;
		poll(NULL, 0, PAUSE_MS);
	}
	if (!t && topic.taken) /* that rank has ended */
		t = message_find((struct nccl_topic){ topic.taken, topic.from, 0 }, &passed);
	if (!t || t->kind != SENT || t->bytes != bytes)
		return false;
	if (sim_is_device_ptr(to))
		contents_store(to, t->data, t->data + bytes, bytes);
	else
		memcpy(to, t->data, bytes);
	if (topic.taken) /* other ranks of this stage may need it from this rank */
		tell(SENT, topic.taken, to, bytes);
	return true;
}
