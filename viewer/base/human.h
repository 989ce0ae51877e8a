/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as people read them. Each function writes into the caller's buffer and returns it. */
#pragma once

#include "usual.h"

#define HUMAN_MAX 32

const char *human_bytes(char buf[HUMAN_MAX], uint64_t bytes); /* "43.8 GiB" */
/* With as many digits as are needed to differ from `other`: "1.24 GiB". */
const char *human_apart(char buf[HUMAN_MAX], uint64_t bytes, uint64_t other);
const char *human_change(char buf[HUMAN_MAX], int64_t bytes);		   /* "+1.0 MiB", "0" */
const char *human_seconds(char buf[HUMAN_MAX], uint64_t ns);		   /* "1.83 s" */
const char *human_share(char buf[HUMAN_MAX], uint64_t part, uint64_t all); /* "60 %" */
const char *human_count(char buf[HUMAN_MAX], uint64_t n);		   /* "12,345" */

#define HUMAN_MANY (HUMAN_MAX + 32)
/* "1 block", "12,345 blocks" */
const char *human_many(char buf[HUMAN_MANY], uint64_t n, const char *one);
/* The same in a buffer that lives until the end of the enclosing C block. */
#define B(n)		   human_bytes((char[HUMAN_MAX]){ 0 }, n)
#define B_APART(n, other)  human_apart((char[HUMAN_MAX]){ 0 }, n, other)
#define CHANGE(n)	   human_change((char[HUMAN_MAX]){ 0 }, (int64_t)(n))
#define SECONDS(ns)	   human_seconds((char[HUMAN_MAX]){ 0 }, ns)
#define PERCENT(part, all) human_share((char[HUMAN_MAX]){ 0 }, part, all)
#define N(n)		   human_count((char[HUMAN_MAX]){ 0 }, n)
#define MANY(n, one)	   human_many((char[HUMAN_MANY]){ 0 }, n, one)

/* A limit as people write it: "2%", "64MiB", "1.5 GB", "4096". */

struct amount {
	bool percent;
	double value; /* percent, or bytes */
};

bool amount_parse(const char *text, struct amount *a);

/* The amount in bytes; a percentage is taken of `all`. */
uint64_t amount_bytes(const struct amount *a, uint64_t all);
