/* SPDX-License-Identifier: Apache-2.0 */
/* Parts shared by the answers of several commands. */
#pragma once

#include "../base/emit.h"
#include "../classes/classify.h"
#include "../model/model.h"
#include "../recording/owner_words.h"
#include "document.h"

/* The classes with any bytes, the largest first; returns how many. */
size_t classes_by_bytes(const uint64_t bytes[CATEGORIES], unsigned order[CATEGORIES]);

/* The line behind an event that allocated. */
struct owner asking_line(struct owners *owners, const struct gmt_event *e);

/* Text: "  what    1.5 GiB  note"; the note is a format, NULL = none. */
void emit_figure(struct emit *out, int width, const char *what, uint64_t bytes, const char *note,
		 ...) __attribute__((format(printf, 5, 6)));

/* Text: "Device 0: peak 1.5 GiB of 80 GiB at 1.83 s", and its phase and line. */
struct peak_words {
	const struct model *model;
	int device;
	uint64_t bytes, total_bytes; /* total_bytes: 0 = not printed */
	uint64_t seq, time_ns;
	const struct instant *at; /* NULL: not printed */
};

void emit_peak_title(struct emit *out, const struct peak_words *p);
/* Only the first of these lines. Returns buf. */
const char *peak_title(const struct peak_words *p, char *buf, size_t room);

/* Facts about a run (user, job, versions), by name, those that are known. The first
 * RUN_IDENTITY of them identify the run. */
enum { RUN_IDENTITY = 12, RUN_FACTS = 18 };
bool run_fact_row(void *defs, size_t i, struct row_fact *row);

/* In how many of the tests a kind of finding or claim was right; zeros = never tested. */
struct claim {
	const char *kind;
	unsigned right, of;
};

struct claim claim_of(const struct claim *table, size_t count, const char *kind);
/* Adds "; measured right in 10 of 11" to the text, unless it was right in at least 99 %. */
void claim_say(const struct claim *c, char *text, size_t room);

/* A fact about a device ("uuid", "name" ...); empty if not known. */
struct defs_text device_fact(const struct defs *d, int device, const char *what);
bool device_is_simulated(const struct defs *d, int device);

/* The name of a device, marked if it was simulated: "simulated h100-80g". "" if unknown. Returns
 * buf. */
const char *device_words(const struct defs *d, int device, char *buf, size_t room);
/* Only the name: "h100-80g". Returns buf. */
const char *device_card(const struct defs *d, int device, char *buf, size_t room);
