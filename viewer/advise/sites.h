/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forward methods on a stack, outermost first. A site is a method with its path: all
 * functions outside of the outermost forward method, and the last line of each forward method.
 * The layers of a model, called by one line in a loop, share a site.
 */
#pragma once

#include "../recording/owners.h"

struct advise;

struct site_of_stack {
	uint64_t key;
	const char *function; /* "Block.forward" */
	unsigned line;	      /* line of the method that made the next call */
	uint64_t outside;     /* hash of the path to it */
};

struct site_path {
	const struct site_of_stack *items;
	size_t count;
};

/* Paths of stacks that were looked up. */
struct sites {
	struct map known; /* stack -> index of its path */
	struct site_path *paths;
	size_t count, room;
};

/* Valid until advise_close(a). */
struct site_path sites_find(struct advise *a, uint32_t stack);
bool sites_has(struct advise *a, uint32_t stack, uint64_t key);
void sites_free(struct sites *s);
/* Writes "Block" for "Block.forward"; returns buf. */
const char *sites_class(const char *function, char *buf, size_t room);

/*
 * Calls of layers in order. A result of a layer is needed by that layer and at most by the next
 * two.
 */

struct layers {
	uint64_t *begins;
	size_t count, room;
	bool found;
	/* Of the latest call: */
	uint64_t key;
	uint32_t stack, pass;
};

/* Whether the method is a container's, whose calls are not layers. */
bool layers_is_container(const char *function);
/* Begin of the third layer after the one with the event, because the caller of a layer holds its
 * result until the next layer returns. PLAN_END = there is none. */
uint64_t layers_after_next(struct advise *a, uint64_t seq);
