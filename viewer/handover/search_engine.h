/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hands a search over to Python (python/gpumemtrace/search): runs of a program on simulated cards.
 * What it finds comes back as lines of text, tables, a document or a page, which are printed here.
 */
#ifndef VIEWER_SEARCH_ENGINE_H
#define VIEWER_SEARCH_ENGINE_H

#include <stdio.h>

#include "../base/emit.h"
#include "../base/json.h"

/* A simulated card. */
struct card {
	char name[96]; /* as SIMGPU_CARD has it */
	uint64_t memory, context;
	int major, minor, code, processors;
};

struct search {
	struct emit *out; /* gets the result */
	/* Of `runs`: each of them; or NULL. */
	void (*run)(void *ctx, struct json run);
	void *ctx;

	char **command;
	/* Set here: */
	struct emit *request;
	char *text;
	size_t len;
	FILE *f;
};

/* Begins the request with what is to be done ("fit", "bisect", "runs"), the program and the
 * environment. */
void search_begin(struct search *s, const char *what);
void search_list(struct search *s, const char *key, char *const *words); /* ending with NULL */
void search_text(struct search *s, const char *key, const char *text);
void search_number(struct search *s, const char *key, double n);
void search_cards(struct search *s, const struct card *cards, size_t count);
/* Performs it, frees the request and returns the exit code. */
int search_perform(struct search *s);

#endif
