/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The peers of a group of gloo, which carries what frameworks exchange on the host: each rank that
 * runs connects to us in the place of every other rank, and we answer what it wants to receive with
 * what it has sent itself at that place (the first with the first: blocks go round a ring in
 * pieces), or with what another rank that runs has sent there. No sockets.
 */
#ifndef VIEWER_GLOO_H
#define VIEWER_GLOO_H

#include "../base/bytes.h"
#include "../base/map.h"
#include "store.h"

struct gloo {
	struct bytes *sent; /* messages */
	size_t count, room;
	uint64_t bytes;
	struct map places; /* by rank, place in the program (gloo counts its collectives), length
			    * and number: which of them; LATEST in the number's place */
	struct map counts; /* by rank, place, length: how many were sent, how many wanted */
};

struct gloo_wire {
	size_t who;
	struct bytes in, out;
	bool known;
	struct gloo_want {
		uint64_t slot, len, since_ms;
		uint32_t nth;
	} * wants;
	size_t count, room;
};

/* Whether a value of the store is where a rank of a group listens; then the same, but with our
 * port on this machine. */
bool gloo_address(struct piece value, int port, struct bytes *ours);
/* A port that gloo connects to: of two ranks the one with the greater address does, and it compares
 * ports by their low byte first. The i-th to try; 0: there are no more. */
int gloo_port(int i);

bool gloo_take(struct gloo_wire *w, struct gloo *g, uint64_t now_ms); /* false: no such protocol */
/* Answers what can be; others_since: since when no other rank that runs has said anything, and 0 if
 * none does. */
void gloo_look(struct gloo_wire *w, struct gloo *g, uint64_t now_ms, uint64_t others_since_ms);
void gloo_wire_free(struct gloo_wire *w);
void gloo_free(struct gloo *g);

#endif
