/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a program that serves a model, by part of the device: when its KV cache was made,
 * and later. Such a program keeps a KV cache of fixed size from pass to pass, with any library. If
 * it trains too, and has a KV cache in passes without gradients, both are shown: the peak while it
 * serves and the peak while it trains.
 */
#pragma once

#include "../moments/timeline.h"
#include "private_pools.h"

struct row_engine; /* document.h */

enum engine_part {
#define PART(name, label) ENGINE_##name,
#include "engine_parts.def"
	ENGINE_PARTS
};

struct engine {
	uint64_t total;	    /* bytes of the device, 0 = no such program */
	uint64_t time_ns;   /* of `now` */
	uint64_t cache_ns;  /* of `then` */
	bool planned;	    /* a pass ran before the cache was made, so it might be sized by that */
	bool trains;	    /* the program trains too */
	bool sleeps;	    /* it unmapped memory of live blocks */
	uint64_t beside_ns; /* of `beside` */
	uint64_t beside[ENGINE_PARTS]; /* at the peak of training, or when most was asleep */
	uint64_t then[ENGINE_PARTS];   /* when the cache was made; work: most of any pass before */
	uint64_t now[ENGINE_PARTS];    /* the last moment with all weights and all of the cache */
	struct owner owners[ENGINE_PARTS]; /* line with most of it; no function: not of one line */
};

void engine_find(struct engine *e, struct timeline *t);
bool engine_document(const struct engine *e, struct row_engine *row);
void engine_text(const struct engine *e, const struct timeline *t, struct emit *out);
