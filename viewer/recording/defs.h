/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Definitions in a recording: strings, threads, modules, code objects, nodes of the stack tree,
 * facts. Each payload is checked when it is added. One that is shorter than its own lengths say is
 * counted and left out.
 */
#pragma once

#include "../../format/reader.h"
#include "../../format/record.h"
#include "../base/map.h"

struct defs_text {
	const char *s; /* ends with a zero, which len does not count */
	size_t len;
};

struct defs_thread {
	uint32_t id, tid;
	struct defs_text name;
};

struct defs_module {
	uint32_t id;
	uint64_t start, end, bias, seq;
	struct defs_text path, build_id;
};

struct defs_code {
	uint32_t id;
	uint32_t first_line;
	uint16_t python, flags;
	struct defs_text file, name, table;
};

struct defs_node {
	uint64_t value;
	uint32_t parent;
	uint32_t frame;
};

/* A native frame's name as stored in the recording itself. */
struct defs_symbol {
	uint64_t address;
	uint32_t id, line;
	struct defs_text file, name;
};

/* The text of a Python statement as it was when the program started. */
struct defs_source {
	uint32_t line, flags; /* enum gmt_source_flag */
	struct defs_text file, text;
};

/* A tensor in a variable of a Python frame. */
struct defs_variable {
	struct gmt_variable head;
	uint64_t sizes[GMT_VARIABLE_DIMS];
	struct defs_text name;
};

/* The variables of one frame at one time. */
struct defs_variables {
	uint64_t seq; /* number of the latest event before them */
	uint32_t node;
	uint32_t count;
	bool refused;	      /* recorded when an allocation failed */
	size_t first, before; /* index of the first in defs.variables; 1 + the node's entry before,
				 0: none */
};

struct defs_meta {
	struct defs_text key, value;
};

struct symbols;

/* Definitions in recorded order, found by their ids. */
struct defs {
	MAP_OF(struct defs_text) strings, functions;
	MAP_OF(struct defs_thread) threads;
	MAP_OF(struct defs_module) modules;
	MAP_OF(struct defs_code) codes;
	MAP_OF(struct defs_node) nodes;
	MAP_OF(struct defs_meta) metas;
	MAP_OF(struct defs_symbol) symbols;
	MAP_OF(struct defs_source) sources;
	MAP_OF(struct defs_variables) frames;
	struct map frame_of; /* node -> 1 + its latest entry in frames */
	struct defs_variable *variables;
	size_t variable_count, variable_room;
	uint64_t bad;		   /* payloads that could not be read */
	struct defs_chunk *chunks; /* storage of the strings */
	struct symbols *names;	   /* kept between questions of the library, or NULL */
};

void defs_free(struct defs *d);

/* A reader's def callback; ctx is a struct defs. */
int defs_add(void *ctx, const struct gmt_def *d);

/* Reads the definitions before the first event; returns like gmt_reader_run. */
int defs_read(struct gmt_reader *r, int (*def)(void *ctx, const struct gmt_def *d), void *ctx);

/* For an unknown id these return NULL (or an empty text). */
struct defs_text defs_string(const struct defs *d, uint32_t id);
const struct defs_thread *defs_thread(const struct defs *d, uint32_t id);
const struct defs_code *defs_code(const struct defs *d, uint32_t id);
const struct defs_node *defs_node(const struct defs *d, uint32_t id);
const struct defs_source *defs_source(const struct defs *d, const char *file, unsigned line);
/* The variables of a node's frame as last recorded up to event `seq`, else as first recorded after
 * it; NULL = none. The tensors: defs_variable(d, x, i), i < x->count. */
const struct defs_variables *defs_variables(const struct defs *d, uint32_t node, uint64_t seq);
const struct defs_variable *defs_variable(const struct defs *d, const struct defs_variables *x,
					  uint32_t i);
/* The mangled name of the exported function that contains a return address. */
struct defs_text defs_function(const struct defs *d, uint64_t address);
struct defs_text defs_meta(const struct defs *d, const char *key);
/* Whether the recording has code from a file whose path contains that part. */
bool defs_has_file(const struct defs *d, const char *part);
