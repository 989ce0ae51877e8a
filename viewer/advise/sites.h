/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forward methods that a stack is inside of, outermost first, each as a place: the method and
 * what led to its call: of what called the outermost one all functions, and the last line. The
 * layers of a model, which one line calls one after the other, are one place.
 */
#pragma once

#include "../recording/owners.h"

struct advise;

struct site_of_stack {
	uint64_t key;
	const char *function; /* "Block.forward" */
	unsigned line;	      /* of it, that led on from there */
	uint64_t outside;     /* all functions and lines that it was called through */
};

struct site_path {
	const struct site_of_stack *items;
	size_t count;
};

/* Those of stacks that were asked for. */
struct sites {
	struct map known; /* stack -> index in paths */
	struct site_path *paths;
	size_t count, room;
};

/* Lives as long as a. */
struct site_path sites_find(struct advise *a, uint32_t stack);
bool sites_has(struct advise *a, uint32_t stack, uint64_t key);
void sites_free(struct sites *s);
/* "Block" of "Block.forward"; returns buf. */
const char *sites_class(const char *function, char *buf, size_t room);

/*
 * Calls of layers in order: what a layer makes is there for it and, at the latest, for the next
 * two.
 */

struct layers {
	uint64_t *begins;
	size_t count, room;
	bool found;
	/* Of the latest: */
	uint64_t key;
	uint32_t stack, pass;
};

/* A container's call is not a layer's. */
bool layers_is_container(const char *function);
/* The beginning of the third layer after the one that the event is in: a result is held by whoever
 * called that layer, too, until the next one is through. PLAN_END = there is none. */
uint64_t layers_after_next(struct advise *a, uint64_t seq);
