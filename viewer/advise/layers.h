/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of layers in order: what a layer makes is there for it and, at the latest, for the next
 * two.
 */
#ifndef VIEWER_LAYERS_H
#define VIEWER_LAYERS_H

#include "advise.h"
#include "sites.h"

struct layers {
	uint64_t *begins;
	size_t count, room;
	uint64_t key;
	uint32_t stack, pass;
};

/* A container's call is not a layer's. */
bool layers_is_container(const char *function);
/* Each life of a forward pass, in order of birth, with the forward methods that it is inside of. */
void layers_note(struct layers *s, const struct site_path *p, const struct advised *l);
/* The beginning of the third layer after the one that the event is in: a result is held by whoever
 * called that layer, too, until the next one is through. PLAN_END = there is none. */
uint64_t layers_after_next(const struct layers *s, uint64_t seq);
void layers_free(struct layers *s);

#endif
