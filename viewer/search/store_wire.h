/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol of PyTorch's TCPStore (both of its servers have the same), the server's side: bytes
 * that came are taken as requests, answers are bytes to be sent. No sockets. Bytes that are no
 * request end the connection.
 */
#ifndef VIEWER_STORE_WIRE_H
#define VIEWER_STORE_WIRE_H

#include "../base/bytes.h"
#include "store.h"

struct wire {
	size_t who;	      /* index among the ranks that run */
	struct bytes in, out; /* what came and is not taken yet; what is to be sent */
	bool known;	      /* it has said what it is */
	struct bytes waits;   /* keys that it waits for: length, bytes */
	bool waiting;
	uint64_t since_ms; /* of that */
	uint64_t asked;	   /* requests, but for those that watchdogs repeat */
};

/* Takes what can be taken of `in`, up to a wait that is not over. False: no such protocol. */
bool wire_take(struct wire *w, struct store *s, uint64_t now_ms);

/* Goes on with a wait: answers it if all keys are there, or are given up by `may_be_set`. */
typedef bool (*wire_hope)(void *ctx, const struct wire *w, struct piece key);
void wire_look(struct wire *w, struct store *s, wire_hope may_be_set, void *ctx);

void wire_free(struct wire *w);

#endif
