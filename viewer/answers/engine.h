/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The account of a program that serves a model: what takes the device, when room for keys and
 * values was made, and later. Such a program keeps a KV cache of fixed size for pass after pass,
 * whoever wrote it. One that trains as well, and has any KV cache in passes without gradients, has
 * an account of both: the most while it serves, and the most while it trains.
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
	uint64_t total;	    /* of the device; 0: no such program */
	uint64_t time_ns;   /* of the account: the last moment with all weights and all cache */
	uint64_t cache_ns;  /* when the cache was there, */
	bool planned;	    /* and a pass had run before it, from which its size may be */
	bool trains;	    /* too: */
	bool sleeps;	    /* or gave memory back that it kept the addresses of: */
	uint64_t beside_ns; /* the highest moment with gradients, or with most asleep, */
	uint64_t beside[ENGINE_PARTS];
	uint64_t then[ENGINE_PARTS]; /* at that time; work: the most of any pass before */
	uint64_t now[ENGINE_PARTS];
	struct owner owners[ENGINE_PARTS]; /* of most of it; no function: not of one line */
};

void engine_find(struct engine *e, struct timeline *t);
bool engine_document(const struct engine *e, struct row_engine *row);
void engine_text(const struct engine *e, const struct timeline *t, struct emit *out);
