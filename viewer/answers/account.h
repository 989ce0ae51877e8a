/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Published formulas for training memory beside the measured memory: rows of one figure each,
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
	struct row_account_row row; /* without the cells for text */
	enum account_unit unit;
	bool repeats; /* the measured figure is in a row above; only the formula is new */
	char note[128];
};

struct account {
	size_t step; /* the measured step, 0 = none */
	bool trains; /* the step has a backward pass or an optimizer's step */
	struct shape shape;
	char optimizer[OPTIMIZER_NAME]; /* "AdamW", "" = none */
	struct account_row rows[ACCOUNT_ROWS];
	size_t count;
	/* Bytes by class at the ends of that step's phases. */
	uint64_t parameters, state, gradients, activations, temporaries;
	uint64_t largest_activation;
	struct owner largest_owner;
	uint64_t layer_bytes; /* activations of the repeated modules, 0 = none found */
	char layer_class[64];
};

void account_make(struct account *out, struct timeline *t, const double given[SHAPE_FIGURES]);
