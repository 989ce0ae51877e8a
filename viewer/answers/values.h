/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that a simulated device had not computed when the program read them: those that decided a
 * size or a branch, and those that were only read (a loss that is logged).
 */
#pragma once

#include "../model/side_tables.h"
#include "../recording/owners.h"
#include "document.h"

#define VALUES_SENTENCE 700

struct value_place {
	const struct read_place *read;
	bool decides; /* a size or a decision depends on it */
	bool sizes;   /* the same, and not only a yes or no */
	struct owner owner;
	char operation[48]; /* as PyTorch calls it: "nonzero"; "" if not known */
};

struct values {
	struct value_place *places; /* in the order of the first reads */
	size_t count;
	uint64_t reads, decisions, sizes; /* in all */
	uint64_t bare;			  /* of the sizes, reads without an assumption */
	unsigned assumed;		  /* assumptions for decisions: 1 << state of the read */
	const struct value_place *first;  /* first of a size, else of a decision, or NULL */
	const struct value_place *again;  /* read most by a program that repeats itself; or NULL */
};

/* v uses the reads, which must outlive it. */
void values_find(struct values *v, const struct reads *reads, struct owners *owners);
void values_free(struct values *v);

/* "3 sizes or decisions rested on values that are not computed; ..."; "" if none did. */
const char *values_sentence(const struct values *v, char text[VALUES_SENTENCE]);
/* The effect on the figures that depend on such values. */
const char *values_effect(const struct values *v);
/* "it repeats the same work and reads ...": "" if no program did. */
const char *values_waiting(const struct values *v, char text[VALUES_SENTENCE]);
void values_text(const struct values *v, struct emit *out);
/* Fills its part of a document; false: no such value was read. */
bool values_document(const struct values *v, struct row_values *row);
