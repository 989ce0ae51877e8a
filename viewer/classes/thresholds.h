/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that rules compare with, each with the reason for its value. */
#pragma once

enum {
	/* Hundredths of a percent for "certain" and "likely": see the manual of `why`. */
	CERTAIN_LEAST = 9990,
	LIKELY_LEAST = 9500,
	/* One program, or a few small blocks, predict nothing about the next program. */
	PROGRAMS_LEAST = 2,
	BYTES_LEAST = 16 << 20,
	/* A batch lives for its own step, and in the next one until it is replaced. */
	BATCH_PASSES = 2,
	/* Gradients can accumulate over a few passes before a step. A parameter outlives more. */
	LEAF_PASSES = 3,
	/* Queries, keys and values can be computed into one block, of which each is a third, or
	 * less because of rounding. */
	APPENDED_PARTS = 4,
	/* Adam keeps two tensors as large as the parameter. With amsgrad it keeps three, which look
	 * like two and averages of the weights. */
	STATES_MOST = 2,
	/* PyTorch's workspace for cuBLAS on most cards. Nothing else is as large by chance. */
	CUBLAS_BYTES = 8519680,
	CUBLAS_HOPPER_BYTES = 32 << 20, /* as large as a weight of 4096 x 4096 in 16 bits */
	/* Least layers of a cache, and bytes of each: fewer or smaller tensors match by chance. */
	LAYERS_LEAST = 4,
	CACHE_LEAST = 64 << 10,
	/* Least number of tensors of a network. A batch has fewer. */
	NETWORK = 16,
};
