/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The published accounts of training memory beside what was measured: rows of one figure each,
 * measured, by formula, or both.
 */
#pragma once

#include "../model/optimizers.h"
#include "../moments/snapshot.h"
#include "document.h"
#include "shape.h"

#define ACCOUNT_ROWS 48

enum account_unit { UNIT_BYTES, UNIT_PER_PARAMETER, UNIT_COUNT };

struct account_row {
	struct row_account_row row; /* without its cells of text */
	enum account_unit unit;
	bool repeats; /* the measured figure stands in a row above; this one is for its formula */
	char note[128];
};

struct account {
	size_t step; /* the one that was looked at, 0 = none */
	bool trains; /* it has a backward pass or an optimizer */
	struct shape shape;
	char optimizer[OPTIMIZER_NAME]; /* "AdamW", "" = none */
	struct account_row rows[ACCOUNT_ROWS];
	size_t count;
	/* Bytes by class at moments of that step, in it: */
	uint64_t parameters, state, gradients, activations, temporaries;
	uint64_t largest_activation;
	struct owner largest_owner;
	uint64_t layer_bytes; /* activations made in the modules that repeat; 0 = not found */
	char layer_class[64];
};

void account_make(struct account *out, struct timeline *t, const double given[SHAPE_FIGURES]);
