/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes recordings, each in its own process, a few at a time. The memory for one is released
 * before the next, and a recording that crashes the reader does not end the others. The results
 * come back in order.
 */
#pragma once

#include "../base/usual.h"

struct ranks_result {
	int rc;		  /* its exit code */
	bool a_part;	  /* a recording that it read has no end or is damaged */
	const char *text; /* its output, readable until done() returns */
	size_t len;
	const char *error; /* its message on stderr, without the command's name; "" = none */
};

struct ranks_work {
	size_t count;
	int (*work)(void *ctx, size_t i, FILE *out);			      /* an exit code */
	void (*done)(void *ctx, size_t i, const struct ranks_result *result); /* in order */
	void *ctx;
};

void ranks_work(const struct ranks_work *w);
