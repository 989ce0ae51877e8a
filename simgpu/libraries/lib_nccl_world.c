/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL in a world of which only some ranks run, each as if alone. SIMGPU_WORLD names those ranks
 * and a file ("0,256,511:PATH"). A rank's messages to ranks that do not run go to that file, and
 * other ranks may read them there. All ranks run the same program. So the root of their own group
 * sent, at the same place, what the root of this group would have sent, and the nearest running
 * stage sent what the stage before this one would have sent. Lengths and shapes that decide sizes
 * arrive this way. Only messages of at most MOST bytes are waited for, and only their known bytes
 * are sent. A running rank may be of the same stage as this one, so that it receives where it would
 * have to send. Then this rank receives the same message. A rank that uses a processor, itself or
 * by its children (compilers), is waited for however long it takes.
 *
 * Any thread. The file has the processes, then the messages in order.
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
#include "../core/processes.h"
#include "lib_nccl.h"

#define ROOM	 ((size_t)256 << 20) /* size of the file, which is sparse */
#define MOST	 ((size_t)64 << 10)
#define RANKS	 8
#define PAUSE_MS 2
#define SILENT_S 20	/* longest wait without message and without use of a processor */
#define BEGIN_MS 120000 /* time for a rank's program to begin */
#define LOOK_MS	 1000
#define TICK_MS	 10 /* of processor time */
#define UINT8	 1  /* types of NCCL */
#define INT64	 4
#define OBJECTS	 64   /* of one broadcast */
#define TWIN_MS	 5000 /* a rank that has received and is idle for so long does not send */

enum { PASSED = 1, SENT, SENT_UNKNOWN };

struct sent {
	uint32_t kind; /* 0: not written yet */
	int32_t rank;
	uint64_t key, bytes, room;
	uint64_t sends;	      /* that rank's, before this */
	unsigned char data[]; /* the bytes, then the state of each */
};

struct world {
	uint64_t used;	    /* bytes of messages */
	int32_t pids[64];   /* process ids of the ranks, in their order */
	uint32_t waits[64]; /* ranks (bits) that each waits for now */
	uint64_t sends[64]; /* messages of any size to a peer */
	unsigned char sent[];
};

static struct world *world;
static int ranks[RANKS], rank_count, own;

/* ---- the file ---- */

static void map_world(void)
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
}

static pthread_once_t mapped = PTHREAD_ONCE_INIT;

/* Enters a rank's first process, which may start the one that uses NCCL. */
static __attribute__((constructor)) void begin(void)
{
	int32_t nobody = 0;

	pthread_once(&mapped, map_world);
	if (world)
		__atomic_compare_exchange_n(&world->pids[own], &nobody, getpid(), false,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

static void open_world(void)
{
	pthread_once(&mapped, map_world);
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

static void write_sent(uint32_t kind, uint64_t key, const void *from, size_t bytes)
{
	size_t room = (sizeof(struct sent) + (kind == SENT ? 2 * bytes : 0) + 63) & ~(size_t)63;
	uint64_t at = __atomic_fetch_add(&world->used, room, __ATOMIC_RELAXED);
	struct sent *t = (struct sent *)(world->sent + at);

	if (at + room > ROOM - sizeof(*world))
		return;
	t->rank = ranks[own];
	t->sends = __atomic_load_n(&world->sends[own], __ATOMIC_RELAXED);
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
		write_sent(is_unknown(from, bytes) ? SENT_UNKNOWN : SENT, topic.key, from, bytes);
}

void nccl_world_pass(struct nccl_topic topic)
{
	if (nccl_world_is_open())
		write_sent(PASSED, topic.key, NULL, 0);
}

void nccl_world_sent(void)
{
	if (nccl_world_is_open())
		__atomic_add_fetch(&world->sends[own], 1, __ATOMIC_RELEASE);
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

	return (struct nccl_topic){
		.key = mix(h, __atomic_fetch_add(&c->broadcasts, 1, __ATOMIC_RELAXED)), .from = -1
	};
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
	struct nccl_topic t = { .from = -1 };

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

	return (struct nccl_topic){ .key = mix(mix(mix(3, c->ranks), c->nth), n),
				    .from = c->ranks - 1 };
}

/* ---- receiving ---- */

static bool runs(int i)
{
	int pid = __atomic_load_n(&world->pids[i], __ATOMIC_ACQUIRE);

	return !pid || !kill(pid, 0) || errno != ESRCH;
}

struct look {
	uint64_t began, at, busy; /* times of the first and last look, and of work seen */
	uint64_t used[RANKS];	  /* processor time */
};

/* Whether a rank of `waited` (bits), or one for which such a rank waits, has worked for a tenth of
 * the time since the last look. One that has not begun counts as working for BEGIN_MS. */
static bool somebody_works(struct look *l, unsigned waited, uint64_t ms)
{
	bool works = false;

	for (int n = 0; n < rank_count; n++)
		for (int i = 0; i < rank_count; i++)
			if (waited & 1u << i)
				waited |= __atomic_load_n(&world->waits[i], __ATOMIC_RELAXED);
	for (int i = 0; i < rank_count; i++) {
		int pid = world->pids[i];
		uint64_t used;

		if (i == own || !(waited & 1u << i) || world->waits[i] || !runs(i))
			continue;
		used = pid ? process_family_used(pid) : 0;
		works = works || (pid ? used > l->used[i] && (used - l->used[i]) * TICK_MS * 10 > ms
				      : l->at - l->began < BEGIN_MS);
		l->used[i] = used;
	}
	return works;
}

static void look_at_world(struct look *l, unsigned waited)
{
	uint64_t now = pending_now_ms(), ms = now - l->at;

	if (l->at && ms < LOOK_MS)
		return;
	l->began = l->at ? l->began : now;
	l->at = now;
	if (somebody_works(l, waited, ms) || !l->busy)
		l->busy = now;
}

/* Finds a message of that topic. *passed: ranks (bits) that do not send it. */
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

/* Ranks (bits) that might still send it. */
static unsigned who_may(struct nccl_topic topic, unsigned passed)
{
	unsigned may = 0;

	for (int i = 0; i < rank_count; i++)
		if (i != own && !(passed & 1u << i) && runs(i) &&
		    (topic.from < 0 || topic.from == ranks[i]))
			may |= 1u << i;
	return may;
}

/* Finds the message that the sender itself received, once it is clear that it does not send: it has
 * sent another since, or is idle. That rank is then of the same stage as this one. */
static const struct sent *look_taken(struct nccl_topic topic, unsigned may, struct look *l)
{
	static unsigned twins; /* ranks (bits) for which that was clear before */
	const struct sent *t;
	unsigned passed;
	uint64_t sends;

	if (!topic.taken || !may)
		return NULL;
	sends = __atomic_load_n(&world->sends[__builtin_ctz(may)], __ATOMIC_ACQUIRE);
	t = message_find((struct nccl_topic){ .key = topic.taken, .from = topic.from }, &passed);
	if (!t || (!(__atomic_load_n(&twins, __ATOMIC_RELAXED) & may) && sends == t->sends &&
		   pending_now_ms() - l->busy < TWIN_MS))
		return NULL;
	if (message_find(topic, &passed)) /* sent meanwhile */
		return message_find(topic, &passed);
	__atomic_fetch_or(&twins, may, __ATOMIC_RELAXED);
	return t;
}

static void say_silent(struct nccl_topic topic, uint64_t ms)
{
	char from[32] = "another rank";

	if (topic.from >= 0)
		snprintf(from, sizeof(from), "rank %d", topic.from);
	fprintf(stderr,
		"simgpu: rank %d has waited %d s for what %s would send, and no processor was used "
		"for that: its buffer stays as it is\n",
		ranks[own], (int)(ms / 1000), from);
}

static uint64_t silent_ms(void)
{
	const char *text = getenv("SIMGPU_WAIT");
	double seconds = text ? atof(text) : 0;

	return (uint64_t)((seconds > 0 ? seconds : SILENT_S) * 1000);
}

/* Waits for a message. NULL if no rank might still send it, or none works on it. */
static const struct sent *wait_for(struct nccl_topic topic)
{
	uint64_t began = pending_now_ms(), heard = began, used = 0;
	const struct sent *t = NULL;
	struct look look = { 0 };
	uint64_t silent = silent_ms();
	unsigned passed, may;

	for (;;) {
		uint64_t now;

		t = message_find(topic, &passed);
		may = t ? 0 : who_may(topic, passed);
		if (!may)
			break;
		look_at_world(&look, may);
		t = look_taken(topic, may, &look);
		if (t)
			break;
		now = pending_now_ms();
		if (used != __atomic_load_n(&world->used, __ATOMIC_RELAXED)) {
			used = __atomic_load_n(&world->used, __ATOMIC_RELAXED);
			heard = now;
		}
		if (now - heard > silent && now - look.busy > silent) {
			say_silent(topic, now - began);
			break;
		}
		__atomic_store_n(&world->waits[own], may, __ATOMIC_RELAXED);
		poll(NULL, 0, PAUSE_MS);
	}
	__atomic_store_n(&world->waits[own], 0, __ATOMIC_RELAXED);
	return t;
}

bool nccl_world_hear(struct nccl_topic topic, void *to, size_t bytes)
{
	const struct sent *t;
	unsigned passed;

	if (!topic.key || bytes > MOST || !nccl_world_is_open() || topic.from == ranks[own])
		return false;
	t = wait_for(topic);
	if (!t && topic.taken) /* that rank has ended */
		t = message_find((struct nccl_topic){ .key = topic.taken, .from = topic.from },
				 &passed);
	if (!t || t->kind != SENT || t->bytes != bytes)
		return false;
	if (sim_is_device_ptr(to))
		contents_store(to, t->data, t->data + bytes, bytes);
	else
		memcpy(to, t->data, bytes);
	if (topic.taken) /* other ranks of this stage may need it from this rank */
		write_sent(SENT, topic.taken, to, bytes);
	return true;
}

/* ---- data that no running rank knows ---- */

static void say_unheard(const struct nccl_comm *c, int root)
{
	static bool said;

	if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
		fprintf(stderr,
			"simgpu: rank %d of %d receives a broadcast of rank %d, which no rank that "
			"runs knows: objects are None, other values stay as they are here; run "
			"that "
			"rank too (fit --ranks)\n",
			c->rank, c->ranks, root);
}

/* PyTorch broadcasts the lengths of objects, then their pickles. Each is assumed to be None. */
void nccl_world_assume(struct nccl_comm *c, void *to, size_t bytes, struct nccl_topic topic)
{
	static const unsigned char none[] = { 0x80, 4, 'N', '.' };
	unsigned char data[OBJECTS * sizeof(uint64_t)] = { 0 }, states[sizeof(data)];
	bool lengths = topic.type == INT64 && bytes <= sizeof(data);
	size_t step = lengths ? sizeof(uint64_t) : sizeof(none);

	if (!lengths && (topic.type != UINT8 || !bytes || bytes != c->objects * sizeof(none)))
		return;
	say_unheard(c, topic.root);
	c->objects = lengths ? bytes / sizeof(uint64_t) : 0;
	for (size_t i = 0; i < bytes; i += step)
		if (lengths)
			data[i] = sizeof(none);
		else
			memcpy(data + i, none, sizeof(none));
	memset(states, CONTENTS_GUESS, bytes);
	contents_store(to, data, states, bytes);
}
