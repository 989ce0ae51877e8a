/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that rules compare with, each with the reason for its value. */
#pragma once

enum {
	/* What a confidence means: see the manual of `why`. Hundredths of a percent. */
	CERTAIN_LEAST = 9990,
	LIKELY_LEAST = 9500,
	/* One program, or a few small blocks, say nothing of the next program. */
	PROGRAMS_LEAST = 2,
	BYTES_LEAST = 16 << 20,
	/* A batch lives for its own step, and in the next one until it is replaced. */
	BATCH_PASSES = 2,
	/* Gradients may add up over a few passes before a step: a parameter outlives more. */
	LEAF_PASSES = 3,
	/* Queries, keys and values may be computed into one block, a third of it each or less by
	 * rounding. */
	APPENDED_PARTS = 4,
	/* Adam keeps two tensors as large as the parameter. With amsgrad it keeps three, which look
	 * like two and averages of the weights. */
	STATES_MOST = 2,
	/* What PyTorch takes for cuBLAS on most cards: nothing else is as large by chance. */
	CUBLAS_BYTES = 8519680,
	CUBLAS_HOPPER_BYTES = 32 << 20, /* as large as a weight of 4096 x 4096 in 16 bits */
	/* Keys and values of a layer; tensors beside a pass are as many as its layers by chance. */
	LAYERS_LEAST = 4,
	CACHE_LEAST = 64 << 10,
	/* Tensors of a network: a batch has fewer. */
	NETWORK = 16,
};
