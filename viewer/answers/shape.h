/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shape of a trained transformer: given by the user, else inferred from the exact sizes of its
 * parameters and saved tensors. Each figure has its source.
 */
#pragma once

#include "../moments/snapshot.h"

enum figure_source { FIGURE_UNKNOWN, FIGURE_GIVEN, FIGURE_INFERRED, FIGURE_ASSUMED };

struct figure {
	double value;
	enum figure_source source;
};

/* In the order of the figures in struct shape. */
enum shape_figure {
	SHAPE_PARAMETERS,
	SHAPE_BYTES,
	SHAPE_SHARDS, /* each device holds one of so many parts */
	SHAPE_LAYERS,
	SHAPE_WIDTH,
	SHAPE_HEADS,
	SHAPE_TOKENS,
	SHAPE_BATCH,
	SHAPE_SEQUENCE,
	SHAPE_ACTIVATION_BYTES,
	SHAPE_FIGURES
};

struct shape {
	struct figure figures[SHAPE_FIGURES];
	uint64_t exact;	    /* bytes of the parameters on the device, without rounding */
	uint64_t trainable; /* of those that require grad, by autograd's tags */
};

/* Sizes in bytes -> how many, the smallest first. */
struct sizes {
	struct size_count {
		uint64_t size, count;
	} * items;
	size_t count, room;
};

/* forward: extent of the step's forward pass, whose saved tensors count; end: snapshot at its end;
 * rest: snapshot without gathered shards; state: bytes of optimizer state; given: 0 = not given. */
void shape_find(struct shape *out, const struct step *step, const struct extent *forward,
		const struct snapshot *end, const struct snapshot *rest, uint64_t state,
		const double given[SHAPE_FIGURES]);

bool shape_has(const struct shape *s, enum shape_figure f);
double shape_get(const struct shape *s, enum shape_figure f); /* 0 if unknown */
extern const char *const shape_names[SHAPE_FIGURES];	      /* "layers" */
extern const char *const shape_sources[]; /* by enum figure_source: "inferred" */
