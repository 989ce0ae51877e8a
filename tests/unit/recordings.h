/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of format/: events by chance, a trace that looks like training, files written, damaged
 * and read back. One thread; fails the test by cmocka where something must work.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../format/block.h"
#include "../../format/codec.h"
#include "../../format/reader.h"
#include "../../format/ring.h"
#include "../../format/writer.h"

/* Random numbers that are the same on every machine. */
struct chance {
	uint64_t state;
};
uint64_t chance_next(struct chance *c);
uint64_t chance_below(struct chance *c, uint64_t n);
uint64_t chance_wide(struct chance *c); /* all lengths from 0 to 64 bits alike */

/* Any kind of records.def with any values in the members it carries. */
struct gmt_event chance_event(struct chance *c);

/* Of a kind that records.def lacks and a reader may pass over, with any values in any members. */
struct gmt_event chance_extra(struct chance *c);

bool same_event(const struct gmt_event *a, const struct gmt_event *b);

/* The i-th event of a plain sequence: seq i, 1000 x i ns; tells itself by its content. */
struct gmt_event plain_event(uint64_t i);

/* Everything that a reader told. Free with heard_free. */
struct heard {
	struct gmt_event *events;
	size_t events_used, events_room;
	struct gmt_def *defs; /* payloads are copies */
	size_t defs_used, defs_room;
	struct gmt_reader_info info;
	int err; /* of open, else of the run */
};
struct heard hear(const char *path);
struct heard hear_between(const char *path, uint64_t from_ns, uint64_t to_ns);
void heard_free(struct heard *h);

/* Path of a file in a folder of this test run, which is removed at its end. */
const char *scratch_path(const char *name);

/* One line each, as in the .txt beside a golden recording. */
void describe_event(FILE *to, const struct gmt_event *e);
void describe_def(FILE *to, const struct gmt_def *d);

struct bytes {
	uint8_t *data;
	size_t len;
};
struct bytes read_file(const char *path);
void write_file(const char *path, const void *data, size_t len);

struct gmt_writer *open_writer(int fd, uint32_t pid);
void close_writer(struct gmt_writer *w); /* frees the workspace */

/* A live file of `rings` rings in memory; save it with write_file. */
struct bytes new_live(uint32_t pid, uint32_t rings);
struct gmt_ring *live_ring(struct bytes live, uint32_t i);

/* Allocations of a GPT-2-like training, `steps` steps: calls back with each event in order. */
void train(uint32_t steps, void (*event)(void *ctx, const struct gmt_event *e), void *ctx);
