/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that stands in for the ranks that do not run: a server for the rendezvous and for the
 * peers of gloo groups. Each running rank has its own port, so that the server knows the sender.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/need.h"
#include "../base/now.h"
#include "gloo.h"
#include "store_wire.h"
#include "world.h"

#define TICK_MS	  50
#define PAUSE_MS  200	/* a wait that lasts so long goes on */
#define SILENT_MS 3000	/* a rank without a request for this long is doing something else */
#define COMING_MS 60000 /* a rank that has not come by then will not */

struct peer {
	int fd;
	bool is_gloo;
	struct wire wire; /* of the rendezvous */
	struct gloo_wire gloo;
};

struct rank {
	int listener, gloo;
	size_t connections;
	bool came;
	uint64_t last_ms; /* that it asked for something */
};

struct server {
	struct world world;
	struct store *store;
	struct gloo gloo;
	int gloo_ports[WORLD_RUN];
	struct rank ranks[WORLD_RUN];
	struct peer *peers;
	size_t count, room;
	uint64_t now_ms, start_ms;
};

/* ---- who may still set a key ---- */

static bool is_waiting(const struct server *v, size_t who)
{
	for (const struct peer *p = v->peers; p < v->peers + v->count; p++)
		if (!p->is_gloo && p->wire.who == who && p->wire.waiting &&
		    v->now_ms - p->wire.since_ms >= PAUSE_MS)
			return true;
	return false;
}

static bool may_set(const struct server *v, size_t who, const struct wire *w, struct piece key)
{
	const struct rank *r = &v->ranks[who];
	uint64_t since = r->last_ms > w->since_ms ? r->last_ms : w->since_ms;

	if (!r->came)
		return v->now_ms - v->start_ms < COMING_MS;
	if (!r->connections || store_has_been(v->store, who, w->who, key))
		return false;
	if (is_waiting(v, who) && v->now_ms - w->since_ms >= PAUSE_MS)
		return false;
	return v->now_ms - since < SILENT_MS;
}

static bool may_be_set(void *ctx, const struct wire *w, struct piece key)
{
	const struct server *v = ctx;

	for (size_t i = 0; i < v->world.count; i++)
		if (i != w->who && may_set(v, i, w, key))
			return true;
	return false;
}

/* Since when no other rank has sent anything; 0: none runs. */
static uint64_t others_since(const struct server *v, size_t who)
{
	uint64_t since = 0, one;

	for (size_t i = 0; i < v->world.count; i++) {
		const struct rank *r = &v->ranks[i];

		one = !r->came ? v->now_ms : r->connections ? r->last_ms : 0;
		if (i != who && one > since)
			since = one;
	}
	return since;
}

/* ---- connections ---- */

static void take_in(struct server *v, size_t who, bool is_gloo)
{
	int one = 1, listener = is_gloo ? v->ranks[who].gloo : v->ranks[who].listener;
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	*need_item(v->peers, v->count, v->room) =
		(struct peer){ .fd = fd, .is_gloo = is_gloo, .wire.who = who, .gloo.who = who };
	v->ranks[who].connections++;
	v->ranks[who].came = true;
	v->ranks[who].last_ms = v->now_ms;
}

static void leave(struct server *v, struct peer *p)
{
	close(p->fd);
	v->ranks[p->wire.who].connections--;
	wire_free(&p->wire);
	gloo_wire_free(&p->gloo);
	*p = v->peers[--v->count];
}

static bool peer_take_requests(struct server *v, struct peer *p)
{
	uint64_t asked = p->wire.asked;
	bool fine = p->is_gloo ? gloo_take(&p->gloo, &v->gloo, v->now_ms)
			       : wire_take(&p->wire, v->store, v->now_ms);

	if (p->is_gloo || p->wire.asked != asked)
		v->ranks[p->wire.who].last_ms = v->now_ms;
	return fine;
}

/* False: it has ended. */
static bool hear(struct server *v, struct peer *p)
{
	char buf[65536];
	ssize_t n = recv(p->fd, buf, sizeof(buf), 0);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (!n)
		return false;
	bytes_add(p->is_gloo ? &p->gloo.in : &p->wire.in, buf, (size_t)n);
	return peer_take_requests(v, p);
}

static struct bytes *output(struct peer *p)
{
	return p->is_gloo ? &p->gloo.out : &p->wire.out;
}

static bool answer(struct peer *p)
{
	struct bytes *out = output(p);
	ssize_t n = out->len ? send(p->fd, out->p, out->len, MSG_NOSIGNAL) : 0;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	memmove(out->p, out->p + n, out->len - (size_t)n);
	out->len -= (size_t)n;
	return true;
}

/* After a wait is over, what came behind it is taken. */
static bool peer_continue(struct server *v, struct peer *p)
{
	if (p->is_gloo) {
		gloo_look(&p->gloo, &v->gloo, v->now_ms, others_since(v, p->gloo.who));
		return answer(p);
	}
	wire_look(&p->wire, v->store, may_be_set, v);
	return peer_take_requests(v, p) && answer(p);
}

static bool any_waits(const struct server *v)
{
	for (const struct peer *p = v->peers; p < v->peers + v->count; p++)
		if (p->wire.waiting || p->gloo.count)
			return true;
	return false;
}

static void turn(struct server *v, struct pollfd *fds)
{
	size_t ranks = 2 * v->world.count, peers = v->count;

	for (size_t i = 0; i < ranks; i++)
		fds[i] = (struct pollfd){ .fd = i % 2 ? v->ranks[i / 2].gloo
						      : v->ranks[i / 2].listener,
					  .events = POLLIN };
	for (size_t i = 0; i < peers; i++)
		fds[ranks + i] = (struct pollfd){
			.fd = v->peers[i].fd,
			.events = (short)(POLLIN | (output(&v->peers[i])->len ? POLLOUT : 0))
		};
	poll(fds, ranks + peers, any_waits(v) ? TICK_MS : 1000);
	v->now_ms = now_ms();
	for (size_t i = peers; i-- > 0;)
		if (fds[ranks + i].revents & ~POLLOUT && !hear(v, &v->peers[i]))
			leave(v, &v->peers[i]);
	for (size_t i = 0; i < ranks; i++)
		if (fds[i].revents)
			take_in(v, i / 2, i % 2);
	for (size_t i = v->count; i-- > 0;)
		if (!peer_continue(v, &v->peers[i]))
			leave(v, &v->peers[i]);
}

static _Noreturn void serve(struct server *v)
{
	struct pollfd *fds = NULL;
	size_t room = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGTERM, SIG_DFL);
	v->store = store_new(&v->world, v->gloo_ports);
	v->start_ms = now_ms();
	for (;;) {
		fds = need_grow(fds, &room, 2 * v->world.count + v->count, sizeof(*fds));
		turn(v, fds);
	}
}

/* ---- for who starts it ---- */

static int listen_at(int *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)*port) };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 64) ||
	    getsockname(fd, (struct sockaddr *)&a, &len)) {
		close(fd);
		return -1;
	}
	*port = ntohs(a.sin_port);
	return fd;
}

/* If no port can be opened there are no gloo peers. */
static int listen_for_gloo(int *port)
{
	int fd = -1;

	for (int i = 0; fd < 0 && (*port = gloo_port(i)); i++)
		fd = listen_at(port);
	return fd;
}

int stand_in_start(struct stand_in *in, const struct world *w)
{
	struct server v = { .world = *w };

	*in = (struct stand_in){ 0 };
	for (size_t i = 0; i < w->count; i++) {
		v.ranks[i].listener = listen_at(&in->ports[i]);
		if (v.ranks[i].listener < 0)
			return errno;
		v.ranks[i].gloo = listen_for_gloo(&v.gloo_ports[i]);
	}
	in->pid = fork();
	if (in->pid == 0)
		serve(&v);
	for (size_t i = 0; i < w->count; i++)
		close(v.ranks[i].listener), close(v.ranks[i].gloo);
	return in->pid < 0 ? errno : 0;
}

void stand_in_end(struct stand_in *in)
{
	if (in->pid <= 0)
		return;
	kill(in->pid, SIGKILL);
	waitpid(in->pid, NULL, 0);
	in->pid = 0;
}
